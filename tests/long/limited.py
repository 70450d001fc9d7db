"""limited.py MOST TARGET: a relay on the loopback, to a port there or to a socket by its path, that
passes MOST connections on at a time and closes each further one at once. Prints its port."""

import asyncio
import socket
import sys

most, target = int(sys.argv[1]), sys.argv[2]
passing = 0
held = set()  # asyncio itself forgets a task that nothing but its own connection knows


async def pass_on(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def serve(reader, writer):
    global passing
    if passing >= most:
        writer.close()
        return
    passing += 1
    held.add(asyncio.current_task())
    try:
        if target.startswith("/"):
            there = await asyncio.open_unix_connection(target)
        else:
            there = await asyncio.open_connection("127.0.0.1", int(target))
        await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer))
        there[1].close()
    finally:
        passing -= 1
        held.discard(asyncio.current_task())
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET, backlog=128)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
