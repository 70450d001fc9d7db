"""The sandbox provider ABI for Python: its structs, and calls that raise. Standard library only."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_int32, c_int64, c_size_t, c_uint16
from ctypes import c_uint32, c_uint64, c_void_p

OK, INVALID_ARGUMENT, NOT_FOUND, CONFLICT, REFUSED, WOULD_BLOCK = 0, -3, -5, -8, -14, -17
CONTINUE, STOP = 0, 1
TIMED_OUT, KILLED = 1, 2
NOWAIT = 1
STREAM_END, STREAM_OUT, STREAM_ERR = 0, 1, 2


class Struct(ctypes.Structure):
    """Starts with its own size, as every struct of the ABI."""

    def __init__(self, **members):
        super().__init__(struct_size=ctypes.sizeof(self), **members)


def struct(name, *members):
    return type(name, (Struct,), {"_fields_": [("struct_size", c_uint32), *members]})


def function(*arguments, returns=c_int32):
    return CFUNCTYPE(returns, *arguments)


Error = struct("sprov_error", ("code", c_int32), ("flags", c_uint32), ("native", c_int32),
               ("reason", c_char * 64), ("message", c_char * 512), ("detail", c_char * 3072))
Cancel = struct("sprov_cancel", ("fd", c_int32), ("ctx", c_void_p),
                ("is_cancelled", function(c_void_p)))
Text = function(c_void_p, c_void_p, c_size_t, returns=None)
Call = struct("sprov_call", ("flags", c_uint32), ("timeout_ms", c_int64),
              ("cancel", POINTER(Cancel)), ("on_progress", Text), ("progress_ctx", c_void_p))
Done = function(c_void_p, returns=None)
Write = function(c_void_p, c_void_p, c_size_t)
Sink = struct("sprov_sink", ("reserved", c_uint32), ("ctx", c_void_p), ("write", Write),
              ("done", Done))
Read = function(c_void_p, c_void_p, c_size_t, POINTER(c_size_t))
Source = struct("sprov_source", ("fd", c_int32), ("size", c_uint64), ("ctx", c_void_p),
                ("read", Read), ("done", Done))
StartResult = struct("sprov_start_result", ("outcome", c_int32), ("id", c_char * 256))
ExecRequest = struct("sprov_exec_request", ("flags", c_uint32), ("command", c_char_p),
                     ("argv", POINTER(c_char_p)), ("env", POINTER(c_char_p)),
                     ("secret_env", POINTER(c_char_p)), ("cwd", c_char_p), ("user", c_char_p),
                     ("stdin_source", POINTER(Source)), ("stdout_sink", POINTER(Sink)),
                     ("stderr_sink", POINTER(Sink)), ("run_timeout_ms", c_int64),
                     ("grace_ms", c_int64))
ExecResult = struct("sprov_exec_result", ("flags", c_uint32), ("exit_code", c_int32),
                    ("term_signal", c_int32), ("duration_ms", c_uint64), ("out_bytes", c_uint64),
                    ("err_bytes", c_uint64))
ReadRequest = struct("sprov_read_request", ("reserved", c_uint32), ("path", c_char_p),
                     ("offset", c_uint64), ("max_bytes", c_uint64), ("sink", POINTER(Sink)))
ReadResult = struct("sprov_read_result", ("mode", c_uint32), ("size", c_uint64),
                    ("mtime_ns", c_int64), ("count", c_uint64))
WriteRequest = struct("sprov_write_request", ("mode", c_uint32), ("path", c_char_p),
                      ("source", POINTER(Source)))
CALL, ERROR = POINTER(Call), POINTER(Error)
Api = struct("sprov_api", ("reserved", c_uint32),
             ("open", function(c_void_p, c_char_p, POINTER(c_void_p), ERROR)),
             ("close", function(c_void_p, ERROR)),
             ("create", function(c_void_p, c_char_p, c_void_p, POINTER(c_void_p), ERROR)),
             ("release", function(c_void_p, returns=None)),
             ("start", function(c_void_p, CALL, POINTER(StartResult), ERROR)),
             ("exec", function(c_void_p, POINTER(ExecRequest), CALL, POINTER(ExecResult), ERROR)),
             ("read_file",
              function(c_void_p, POINTER(ReadRequest), CALL, POINTER(ReadResult), ERROR)),
             ("write_file", function(c_void_p, POINTER(WriteRequest), CALL, ERROR)),
             ("destroy", function(c_void_p, CALL, ERROR)),
             ("build_template", c_void_p))
Descriptor = struct("sprov_descriptor", ("reserved", c_uint32), ("id", c_char_p),
                    ("name", c_char_p), ("version", c_char_p), ("vendor", c_char_p))
Entry = struct("sprov_entry", ("abi_minor", c_uint32), ("descriptor", POINTER(Descriptor)),
               ("api", POINTER(Api)), ("get_extension", function(c_char_p, returns=c_void_p)))
SpawnRequest = struct("sprov_spawn_request", ("stdin_mode", c_int32), ("retain_bytes", c_uint64),
                      ("exec", POINTER(ExecRequest)), ("overflow", c_int32),
                      ("tty_rows", c_uint16), ("tty_columns", c_uint16))
KillRequest = struct("sprov_kill_request", ("signal", c_int32), ("scope", c_int32),
                     ("reserved", c_uint32), ("grace_ms", c_int64))
SIMPLE = function(c_void_p, CALL, ERROR)
Processes = struct(
    "sprov_ext_processes", ("reserved", c_uint32),
    ("spawn", function(c_void_p, POINTER(SpawnRequest), CALL, POINTER(c_void_p), ERROR)),
    ("release", function(c_void_p, returns=None)),
    ("id", function(c_void_p, returns=c_char_p)),
    ("wait", function(c_void_p, CALL, POINTER(ExecResult), ERROR)),
    ("kill", function(c_void_p, POINTER(KillRequest), CALL, ERROR)),
    ("write_stdin",
     function(c_void_p, c_char_p, c_size_t, POINTER(c_size_t), CALL, ERROR)),
    ("close_stdin", SIMPLE),
    ("resize", function(c_void_p, c_uint16, c_uint16, CALL, ERROR)),
    ("read", function(c_void_p, c_int32, POINTER(c_uint64), c_char_p, c_size_t,
                      POINTER(c_size_t), CALL, ERROR)),
    ("fd", function(c_void_p, c_int32)),
    ("resume", function(c_void_p, c_int32, returns=None)),
    ("forget", SIMPLE),
    ("list", function(c_void_p, CALL, Text, c_void_p, ERROR)),
    ("find", function(c_void_p, c_char_p, CALL, POINTER(c_void_p), ERROR)))


class Failed(Exception):
    def __init__(self, status, error):
        super().__init__(error.message.decode())
        self.status, self.reason = status, error.reason.decode()


def check(call, *arguments):
    """Makes a call whose last argument is the error, and raises what it answers."""
    error = Error()
    status = call(*arguments, ctypes.byref(error))
    if status != OK:
        raise Failed(status, error)


def texts(*values):
    """A NULL-terminated array."""
    return (c_char_p * (len(values) + 1))(*values, None)


class Calls:
    """The callbacks of one call. What one of them raises ends the call and is raised after it."""

    def __init__(self):
        self.raised = None

    def _guard(self, answer, when_raised):
        try:
            return answer()
        except BaseException as raised:  # pylint: disable=broad-except
            self.raised = self.raised or raised
            return when_raised

    def sink(self, take):
        def write(_, data, size):
            return self._guard(lambda: take(ctypes.string_at(data, size)) or CONTINUE, STOP)
        return Sink(write=Write(write))

    def source(self, give):
        def fill(buffer, capacity, count):
            data = give(capacity)
            ctypes.memmove(buffer, data, len(data))
            count[0] = len(data)
            return OK
        give_up = 2

        def read(_, buffer, capacity, count):
            return self._guard(lambda: fill(buffer, capacity, count), give_up)
        return Source(size=2**64 - 1, read=Read(read))

    def make(self, call, *arguments):
        try:
            check(call, *arguments)
        except Failed:
            if self.raised:
                raise self.raised from None
            raise


class Provider:
    def __init__(self, path, config=None):
        entry = ctypes.CDLL(path).sprov_entry_v1
        entry.restype = POINTER(Entry)
        self.entry = entry().contents
        self.api = self.entry.api.contents
        self.handle = c_void_p()
        check(self.api.open, None, config, ctypes.byref(self.handle))

    def extension(self, name, kind):
        table = self.entry.get_extension(name)
        return ctypes.cast(table, POINTER(kind)).contents if table else None

    def close(self):
        check(self.api.close, self.handle)


class Sandbox:
    def __init__(self, provider, options):
        self.api = provider.api
        self.handle = c_void_p()
        check(self.api.create, provider.handle, options.encode(), None, ctypes.byref(self.handle))

    def start(self):
        result = StartResult()
        check(self.api.start, self.handle, None, ctypes.byref(result))
        return result.outcome, result.id.decode()

    def exec(self, command, env=(), out=None, err=None, stdin=None, call=None):
        calls, result = Calls(), ExecResult()
        request = ExecRequest(command=command, env=texts(*env))
        for member, take in (("stdout_sink", out), ("stderr_sink", err)):
            if take:
                setattr(request, member, ctypes.pointer(calls.sink(take)))
        if stdin:
            request.stdin_source = ctypes.pointer(calls.source(stdin))
        calls.make(self.api.exec, self.handle, request, call, result)
        return result

    def read_file(self, path):
        calls, pieces, result = Calls(), [], ReadResult()
        request = ReadRequest(path=path, sink=ctypes.pointer(calls.sink(pieces.append)))
        calls.make(self.api.read_file, self.handle, request, None, result)
        return b"".join(pieces)

    def write_file(self, path, give):
        calls = Calls()
        request = WriteRequest(path=path, source=ctypes.pointer(calls.source(give)))
        calls.make(self.api.write_file, self.handle, request, None)

    def destroy(self):
        check(self.api.destroy, self.handle, None)
        self.api.release(self.handle)
