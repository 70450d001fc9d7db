#!/usr/bin/env python3
"""look.py PNG: fails unless a screenshot of the suite's page shows passes and failures in their colours
and has its margins. Reads what Chromium writes: 8 bits a channel, not interlaced."""
import struct
import sys
import zlib


def rows(path):
    """The rows of a picture, each a bytearray of RGB or RGBA, and the bytes of one pixel."""
    data = open(path, 'rb').read()
    at, packed = 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        if kind == b'IHDR':
            width, height, depth, colour, _, _, interlaced = struct.unpack('>IIBBBBB', data[at + 8:at + 21])
        if kind == b'IDAT':
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    assert depth == 8 and colour in (2, 6) and not interlaced
    pixel = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(packed), width * pixel
    before, out = bytearray(stride), []
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left = row[x - pixel] if x >= pixel else 0
            up, corner = before[x], before[x - pixel] if x >= pixel else 0
            if kind == 1:
                row[x] = (row[x] + left) & 255
            elif kind == 2:
                row[x] = (row[x] + up) & 255
            elif kind == 3:
                row[x] = (row[x] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                row[x] = (row[x] + nearest[2]) & 255
        out.append(row)
        before = row
    return out, pixel


def main():
    picture, pixel = rows(sys.argv[1])
    counts = {}
    for row in picture:
        for x in range(0, len(row), pixel):
            colour = bytes(row[x:x + 3])
            counts[colour] = counts.get(colour, 0) + 1
    back = max(counts, key=counts.get)
    for name, wanted in ('pass', (0x1a, 0x7f, 0x4b)), ('fail', (0xc0, 0x27, 0x3a)):
        assert counts.get(bytes(wanted), 0) > 100, f'no colour of {name}: {counts.get(bytes(wanted), 0)} pixels'
    for row in picture:
        edges = bytes(row[:3]), bytes(row[-pixel:][:3])
        assert edges == (back, back), f'something reaches the edge of the page: {edges}, not {back}'


main()
