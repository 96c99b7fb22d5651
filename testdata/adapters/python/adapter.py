#!/usr/bin/env python3
"""An adapter for Caisson: it serves the files of a directory and real processes.

It speaks the worker protocol, version 4, on stdin and stdout, and was written from
the document of that protocol alone. It cannot confine commands, so it refuses them
in every mode but "unconfined". Start it without arguments.
"""

import hmac
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

from files import Files, Refusal
from processes import FINAL, Processes

REQUESTS = 256  # at once
READ_BYTES = 256 << 10  # of the input, at once
SHOWN_BYTES = 1 << 20  # of stdout and stderr of a command together
TOOLS = {  # their arguments, with the type of each; those in capitals are required
    "read_file": {"PATH": str, "offset": int, "limit": int, "continuation": str, "encoding": str,
                  "byte_offset": int, "byte_limit": int},
    "write_file": {"PATH": str, "CONTENT": str, "create_only": bool, "encoding": str},
    "edit_file": {"PATH": str, "OLD_TEXT": str, "NEW_TEXT": str, "replace_all": bool},
    "list_files": {"path": str, "offset": int},
    "grep": {"PATTERN": str, "path": str, "include": str, "output_mode": str, "context": int, "before": int,
             "after": int, "ignore_case": bool, "offset": int},
    "glob": {"PATTERN": str, "path": str, "offset": int},
    "bash": {"COMMAND": str, "timeout_seconds": int, "cwd": str, "run_in_background": bool},
    "git": {"SUBCOMMAND": str, "args": list},
    "process": {"ACTION": str, "process_id": str, "wait_ms": int, "offset_bytes": int, "max_bytes": int,
                "input": str},
    "present_artifact": {"PATH": str},
}
WRITING = ("write_file", "edit_file")


class Malformed(Exception):
    """What ends the connection."""


class Request:
    def __init__(self, id, method, data):
        self.id, self.method, self.data = id, method, data
        self.cancelled = threading.Event()
        self.wake = None  # called, once, when the request is cancelled

    def cancel(self):
        self.cancelled.set()
        if self.wake:
            self.wake()

    def on_cancel(self, wake):
        self.wake = wake
        if self.cancelled.is_set():
            wake()


class Adapter:
    frame_bytes = 16 << 20  # one line, its end included
    capabilities = ["process.start.v1", "caisson.errors.v1", "caisson.process.v1", "caisson.limits.v1",
                    "caisson.tools.v1", "caisson.shutdown.v1"]

    files_class = Files

    def __init__(self, stdin, stdout):
        self.stdin, self.stdout, self.writing = stdin, stdout, threading.Lock()
        self.live, self.lock = {}, threading.Lock()
        self.token = self.binding = None
        self.failed = False  # an initialize did
        self.ending = threading.Lock()
        self.methods = {
            "execute": self.execute, "tools/list": lambda r: {"tools": []}, "shutdown": self.shutdown,
            "export/read": lambda r: self.files.export_read(r.data["token"], r.data.get("offset", 0)),
            "export/close": lambda r: self.files.export_close(r.data["token"]),
            "process/start": self.process_start, "process/read": self.process_read,
            "process/list": lambda r: self.processes.list(),
            "process/cleanup": lambda r: self.processes.cleanup(),
            "process/get": self.process_change(lambda p, d: None),
            "process/stop": self.process_change(lambda p, d: p.stop()),
            "process/write": self.process_change(lambda p, d: p.write(d.get("input", "").encode())),
            "process/resize": self.process_change(lambda p, d: p.set_size(d["cols"], d["rows"])),
            "process/signal": self.process_change(lambda p, d: p.signal(d["signal"])),
            "process/close_stdin": self.process_change(lambda p, d: p.close_stdin()),
            "process/completion_mode": self.process_change(lambda p, d: p.record.update(completion_mode=d["mode"])),
            "process/completion_delivered": self.process_change(lambda p, d: setattr(p, "delivered", True)),
            "process/recheck": self.process_change(lambda p, d: None),
            "process/recheck_delivered": self.process_change(lambda p, d: None),
            "process/input_available": lambda r: not self.process(r).ended(),
            "process/completion_pending": lambda r: self.completion_pending(self.process(r)),
        }

    # Frames.

    def run(self):
        """Serves until the input ends or is none of the protocol."""
        try:
            while line := self.stdin.readline(self.frame_bytes + 1):
                self.receive(line)
            code = 0
        except Malformed as e:
            print(f"the input is not the protocol: {e}", file=sys.stderr)
            code = 1
        self.end(code)

    def receive(self, line):
        if len(line) > self.frame_bytes:
            raise Malformed("a line is longer than 16 MiB")
        try:
            frame = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise Malformed(str(e)) from e
        if not isinstance(frame, dict):
            raise Malformed("a line is no object")
        id, method = frame.get("id"), frame.get("method")
        try:
            self.admit(id, method, frame)
        except Refusal as e:
            if method not in ("cancel", "callback"):
                self.refuse(id if isinstance(id, str) else "", e)

    def admit(self, id, method, frame):
        self.check_token(frame.get("token"), method)
        if method == "cancel":
            return self.cancel(id)
        if method == "callback":
            return None  # nothing here asks the host for a tool
        if not isinstance(id, str) or not id:
            raise Refusal("a request needs an id")
        data = frame.get("data") or {}
        if method == "initialize":
            return self.send({"id": id, "data": self.initialize(data, frame.get("token"))})
        self.check_bound(method)
        if method not in self.methods:
            raise Refusal(f"there is no method {method}", "unsupported")
        request = Request(id, method, data)
        with self.lock:
            self.check_free(id)
            if len(self.live) >= REQUESTS:
                raise Refusal("too many requests at once", "overloaded")
            thread = threading.Thread(target=self.serve, args=(request,), daemon=True)
            self.live[id] = request, thread
        return thread.start()

    def check_token(self, token, method):
        if self.token is None:
            return
        if not isinstance(token, str) or not hmac.compare_digest(token.encode(), self.token.encode()):
            raise Refusal("the token is wrong or missing", "denied")

    def check_bound(self, method):
        if self.binding is None:
            raise Refusal("initialize comes first", "invalidParams")

    def check_free(self, id):
        if id in self.live:
            raise Refusal(f"a request {id} is in flight")

    def cancel(self, id):
        with self.lock:
            request, _ = self.live.get(id, (None, None))
        if request:
            request.cancel()

    def serve(self, request):
        try:
            reply = {"id": request.id, "data": self.handle(request)}
        except Refusal as e:
            reply = self.refusal(request.id, e)
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            reply = self.refusal(request.id, Refusal(f"the data of {request.method} is wrong: {e!r}"))
        except Exception as e:  # whatever it is, the host is waiting for a reply
            traceback.print_exc()
            reply = self.refusal(request.id, Refusal(f"{request.method} failed: {e!r}", "internal"))
        self.answer(request, reply)
        if request.method == "shutdown" and "data" in reply:
            self.end(0)

    def handle(self, request):
        return self.methods[request.method](request)

    def answer(self, request, reply):
        with self.lock:
            self.live.pop(request.id, None)
        self.send(reply)

    def refusal(self, id, e):
        return {"id": id, "error": str(e) or "refused", "detail": e.detail}

    def refuse(self, id, e):
        self.send(self.refusal(id, e))

    def emit(self, event):
        self.send({"id": "", "method": "process", "data": event})

    def send(self, frame):
        line = json.dumps(frame).encode() + b"\n"
        if len(line) > self.frame_bytes:
            return self.refuse(frame["id"], Refusal("the answer is longer than 16 MiB", "artifactTooLarge"))
        try:
            with self.writing:
                self.stdout.write(line)
                self.stdout.flush()
        except OSError:
            threading.Thread(target=self.end, args=(1,)).start()

    # Beginning and end.

    def initialize(self, data, token):
        try:
            if self.failed:
                raise Refusal("an initialize failed on this connection: make a new one", "invalidParams")
            self.check_version(data)
            if self.binding is None:
                return self.bind(data, token)
        except Refusal:
            self.failed = True
            raise
        self.check_binding(data)
        return self.initialized()

    def check_version(self, data):
        if data.get("version") != 4:
            raise Refusal(f"this adapter speaks version 4, not {data.get('version')}", "protocolMismatch")

    def binding_of(self, data):
        binding = {k: data.get(k) or None for k in ("version", "root", "session", "identity", "environment",
                                                     "require_existing_workspace", "remove_workspace_on_exit")}
        if not isinstance(binding["root"], str) or not os.path.isabs(binding["root"]):
            raise Refusal("root is an absolute path")
        self.check_name("session", binding["session"])
        if binding["identity"] is not None:
            self.check_name("identity", binding["identity"])
        return binding

    def check_name(self, member, name):
        if not isinstance(name, str) or name in (".", "..") or "/" in name or "\0" in name:
            raise Refusal(f"{member} is one path component")

    def check_binding(self, data):
        binding = self.binding_of(data)
        if binding["environment"] is None:
            binding["environment"] = self.binding["environment"]
        if binding != self.binding:
            raise Refusal("the binding of a connection does not change", "invalidParams")

    def bind(self, data, token):
        binding = self.binding_of(data)
        self.make_root(binding)
        if token and len(token) >= 32:
            self.token = token
        self.state = tempfile.mkdtemp(prefix="adapter-")
        self.files = self.files_class(os.path.realpath(binding["root"]), self.state)
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.environ.get("HOME", "/"),
                       **(binding["environment"] or {})}
        self.processes = Processes(binding["session"], self.files.root, environment, self.emit)
        self.binding = binding
        return self.initialized()

    def make_root(self, binding):
        root = binding["root"]
        if os.path.isdir(root):
            return
        if binding["require_existing_workspace"]:
            raise Refusal(f"{root} does not exist", "environmentLost")
        try:
            os.makedirs(root, mode=0o700)
        except OSError as e:
            raise Refusal(f"{root}: {e.strerror}") from e

    def initialized(self):
        return {"version": 4, "root": self.files.root, "capabilities": self.capabilities}

    def shutdown(self, request):
        self.finish()
        if request.data.get("remove"):
            self.remove_root()
        return {}

    def end(self, code):
        """Ends in order: the requests, their handlers, the processes, the program."""
        if not self.ending.acquire(blocking=False):
            threading.Event().wait()  # another thread is at it, and exits
        with self.lock:
            left = list(self.live.values())
        self.cancel_all(left)
        for _, thread in left:
            if thread is not threading.current_thread():
                thread.join()
        if self.binding is not None:
            self.finish()
            shutil.rmtree(self.state, ignore_errors=True)
            if self.binding["remove_workspace_on_exit"]:
                self.remove_root()
        sys.stderr.flush()
        os._exit(code)

    def cancel_all(self, left):
        for request, _ in left:
            request.cancel()

    def finish(self):
        self.processes.close()

    def remove_root(self):
        shutil.rmtree(self.files.root, ignore_errors=True)

    # Tools.

    def execute(self, request):
        call, mode = request.data["call"], self.mode(request.data)
        name, arguments = call["name"], self.arguments(call)
        if not request.data.get("actor"):
            raise Refusal("actor is missing")
        if name not in TOOLS:
            raise Refusal(f"there is no tool {name}", "unsupported")
        self.check_arguments(name, arguments)
        if name in WRITING and mode == "read_only":
            raise Refusal(f"{name} is not allowed in read_only", "denied")
        if name in ("bash", "git", "process"):
            result = getattr(self, name)(request, mode, **arguments)
        else:
            result = getattr(self.files, name)(**arguments)
        if "content" in result and isinstance(result["content"], list):
            return result
        return {"structured_content": result}

    def mode(self, data):
        mode = data.get("permission_mode") or "standard"
        if mode not in ("standard", "read_only", "unconfined"):
            raise Refusal(f"there is no permission mode {mode}")
        return mode

    def arguments(self, call):
        try:
            arguments = json.loads(call["arguments"])
        except ValueError as e:
            raise Refusal(f"arguments: {e}") from e
        if not isinstance(arguments, dict):
            raise Refusal("arguments are no object")
        return arguments

    def check_arguments(self, name, arguments):
        known = {k.lower(): t for k, t in TOOLS[name].items()}
        for argument, value in arguments.items():
            if argument not in known:
                raise Refusal(f"{name} has no argument {argument}")
            if not isinstance(value, known[argument]) or isinstance(value, bool) and known[argument] is int:
                raise Refusal(f"{argument} has the wrong type")
        for argument in TOOLS[name]:
            if argument.isupper() and argument.lower() not in arguments:
                raise Refusal(f"{name} needs {argument.lower()}")

    def check_unconfined(self, mode):
        if mode != "unconfined":
            raise Refusal(f"commands cannot be confined here, so there are none in {mode}", "unsupported",
                          "use the mode unconfined")

    def bash(self, request, mode, command, timeout_seconds=300, cwd="", run_in_background=False):
        self.check_unconfined(mode)
        if not 1 <= timeout_seconds <= 3600:
            raise Refusal("timeout_seconds is 1 to 3600")
        start = {"command": command, "cwd": self.files.resolve(cwd), "actor": request.data["actor"],
                 "permission_mode": mode, "stdin": False}
        return self.run_command(request, start, command, 0 if run_in_background else timeout_seconds)

    def git(self, request, mode, subcommand, args=()):
        self.check_unconfined(mode)
        argv = ["git", "--no-pager", subcommand, *args]
        start = {"argv": argv, "cwd": self.files.root, "actor": request.data["actor"],
                 "permission_mode": mode, "stdin": False}
        return self.run_command(request, start, " ".join(argv), 300)

    def run_command(self, request, start, title, timeout):
        begun = time.monotonic()
        process = self.processes.start(start)
        request.on_cancel(lambda: process.kill(signal.SIGKILL))
        ended = self.wait_for(process, timeout) if timeout else False  # in the background, however short
        if request.cancelled.is_set():
            process.wait()
            self.processes.drop(process)
            raise Refusal("cancelled", "cancelled")
        promoted = not ended and self.processes.admit(process, always=timeout == 0)
        request.on_cancel(None) if promoted else process.wait()
        if not promoted:
            self.processes.drop(process)
        return self.command_result(process, request, title, begun, promoted, promoted and timeout > 0)

    def wait_for(self, process, timeout):
        return process.wait(timeout)

    def command_result(self, process, request, title, begun, promoted, timed_out):
        most = request.data.get("max_output_bytes") or SHOWN_BYTES
        result = {"command": title, "exit_code": process.record["exit_code"]}
        for name, output in process.apart.items():
            with process.changed:
                data, cut = bytes(output.data[:most // 2]), output.total() > most // 2
            result[name], result[name + "_truncated"] = data.decode("utf-8", "replace"), cut
        result.update(duration_ms=int((time.monotonic() - begun) * 1000), timed_out=timed_out)
        if promoted:
            result["promoted_process_id"] = process.id
        elif "signal" in process.record:
            result["signal"] = process.record["signal"]
        return result

    # process: the tool, and the methods.

    def process(self, request, mode=None, action=None, process_id="", wait_ms=0, offset_bytes=None,
                max_bytes=0, input=""):
        if action is None:
            return self.processes.get(request.data.get("id", ""))
        if action == "list":
            return {"processes": self.processes.list()}
        process = self.processes.get(process_id)
        if action == "stop":
            process.stop()
        elif action == "write":
            process.write(input.encode())
        elif action == "read":
            if offset_bytes is None and wait_ms:
                offset_bytes = process.read_to
            return self.read_result(process, request, offset_bytes, max_bytes, wait_ms)
        elif action != "update":
            raise Refusal("action is read, write, stop, list or update")
        return {"process": process.snapshot()}

    def read_result(self, process, request, offset, limit, wait_ms):
        request.on_cancel(lambda: self.wake(process))
        r = process.read(offset, limit or 32768, wait_ms / 1000, 0, request.cancelled)
        eof = r["Process"]["status"] in FINAL and r["EndOffset"] == r["TotalBytes"]
        return {"process": r["Process"], "output": r["Output"], "start_offset": r["StartOffset"],
                "end_offset": r["EndOffset"], "total_bytes": r["TotalBytes"], "truncated": r["Truncated"],
                "timed_out": r["TimedOut"], "eof": eof}

    def process_start(self, request):
        start = dict(request.data)
        if not start.get("operation_id") or not start.get("actor"):
            raise Refusal("operation_id and actor are needed")
        self.check_unconfined(self.mode(start))
        start["cwd"] = self.files.resolve(start.get("cwd") or "")
        process = self.processes.start(start)
        self.processes.admit(process)
        return process.snapshot()

    def process_read(self, request):
        process, options = self.process(request), request.data.get("options") or {}
        request.on_cancel(lambda: self.wake(process))
        reply = process.read(options.get("OffsetBytes"), options.get("MaxBytes") or 32768,
                             self.seconds(options.get("Wait", 0)), self.seconds(options.get("MinDwell", 0)),
                             request.cancelled)
        if request.cancelled.is_set():
            raise Refusal("cancelled", "cancelled")
        return reply

    def seconds(self, nanoseconds):
        return nanoseconds / 1e9

    def wake(self, process):
        with process.changed:
            process.changed.notify_all()

    def process_change(self, change):
        def method(request):
            process = self.process(request)
            change(process, request.data)
            return process.snapshot()
        return method

    def completion_pending(self, process):
        return process.ended() and not getattr(process, "delivered", False)


def main(adapter=Adapter):
    # What prints by mistake goes to the log, never among the frames.
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    served = adapter(open(0, "rb", buffering=READ_BYTES, closefd=False), stdout)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=served.end, args=(1,)).start())
    served.run()


if __name__ == "__main__":
    main()
