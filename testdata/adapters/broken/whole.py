"""The adapter of ../python with what it leaves out: bodies, fs/*, side chats,
programs of a toy language, jobs and packs, so that there is something to break of everything."""

import base64
import json
import os
import re
import stat
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from adapter import Adapter, Malformed  # noqa: E402
from files import Refusal, to_name  # noqa: E402
from jobs import Jobs  # noqa: E402
from packs import Packs  # noqa: E402
import processes  # noqa: E402

# Waited out each time that an adapter is checked: whoever holds a pipe or ignores a
# signal there does so for good.
processes.DRAIN = processes.GRACE = 0.5  # seconds

PIECE_BYTES = 256 << 10
WINDOW_BYTES = 4 << 20


class Body:
    """The data of a reply that is raw bytes, with the members beside them."""

    def __init__(self, content, data=None):
        self.content, self.data = content, data or {}


class Whole(Packs, Jobs, Adapter):
    capabilities = Adapter.capabilities + ["caisson.bulk.v1", "caisson.fs.v1", "caisson.actors.v1", "caisson.job.v1",
                                            "caisson.packs.v1"]

    def __init__(self, stdin, stdout):
        super().__init__(stdin, stdout)
        self.bulk = False  # whether the host knows bodies
        self.incoming = {}  # requests whose body is on its way
        self.taken, self.taking = {}, threading.Condition()
        self.calls, self.asked = {}, 0
        self.methods.update({
            "run_code": self.run_code, "fs/stat": lambda r: self.stat(r.data["path"]),
            "fs/read_directory": self.read_directory, "fs/read_file": self.read_file,
            "fs/write_file": self.write_file, "export/stream": self.export_stream,
            "job/run": lambda r: Body(*reversed(self.job_run(r)))})

    def initialize(self, data, token):
        reply = super().initialize(data, token)
        self.bulk = "caisson.bulk.v1" in (data.get("capabilities") or [])
        return reply

    # Bodies.

    def admit(self, id, method, frame):
        if method == "body":
            return self.take(id, self.stdin.read(frame.get("raw", 0)))
        if method == "body_taken":
            with self.taking:
                self.taken[id] = frame["body"]
                self.taking.notify_all()
            return None
        if method == "callback":
            return self.called(frame)
        if frame.get("body") and self.bulk:
            self.check_token(frame.get("token"), method)
            self.incoming[id] = frame, bytearray()
            return None
        return super().admit(id, method, frame)

    def take(self, id, raw):
        if id not in self.incoming:
            raise Malformed("a piece of no body")
        frame, content = self.incoming[id]
        content += raw
        if len(content) < frame["body"]:
            return self.send({"id": id, "method": "body_taken", "body": len(content)})
        del self.incoming[id]
        frame["data"]["body"] = bytes(content)
        return super().admit(id, frame["method"], frame)

    def answer(self, request, reply):
        body = reply.get("data")
        if not isinstance(body, Body):
            return super().answer(request, reply)
        if not self.bulk:
            return super().answer(request, self.refusal(request.id, Refusal("the host knows no bodies", "unsupported")))
        super().answer(request, {"id": request.id, "data": body.data, "body": len(body.content)})
        for at in range(0, len(body.content), PIECE_BYTES):
            with self.taking:
                self.taking.wait_for(lambda: at - self.taken.get(request.id, 0) < WINDOW_BYTES - PIECE_BYTES)
            self.send_piece(request.id, body.content[at:at + PIECE_BYTES])
        return None

    def send_piece(self, id, piece):
        with self.writing:
            self.stdout.write(json.dumps({"id": id, "method": "body", "raw": len(piece)}).encode() + b"\n" + piece)
            self.stdout.flush()

    def execute(self, request):
        if "body" in request.data:
            request.data["call"]["arguments"] = request.data["body"].decode()
        return super().execute(request)

    def mode(self, data):
        return "read_only" if data.get("actor_kind") == "side_chat" else super().mode(data)

    # fs/* and export/stream.

    def stat(self, path):
        file = self.files.resolve(path)
        try:
            s = os.stat(file)
        except OSError as e:
            raise Refusal(f"{path}: {e.strerror}", "invalidParams") from e
        modified = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(s.st_mtime))
        return {"name": to_name(os.path.basename(file)), "path": self.files.relative(file), "size": s.st_size,
                "is_dir": stat.S_ISDIR(s.st_mode), "mode": f"{stat.S_IMODE(s.st_mode):04o}", "mtime": modified}

    def read_directory(self, request):
        directory = self.files.resolve(request.data["path"])
        return {"entries": [self.stat(os.path.join(directory, name)) for name in sorted(os.listdir(directory))]}

    def read_file(self, request):
        offset, length = request.data.get("offset", 0), request.data.get("length", -1)
        content = self.files.load(self.files.resolve(request.data["path"]))[offset:]
        return Body(content if length < 0 else content[:length])

    def write_file(self, request):
        self.files.replace(self.files.resolve(request.data["path"]), request.data.get("body", b""))
        return self.stat(request.data["path"])

    def export_stream(self, request):
        with open(self.files.export(request.data["token"]), "rb") as f:
            return Body(f.read())

    # Programs: a number, or one call of a tool with an object of JSON.

    def run_code(self, request):
        code = request.data["program"]["code"].strip()
        reply = {"Logs": [], "Value": None, "Error": "", "Media": [], "CallSummary": None}
        call = re.fullmatch(r"(\w+)\((\{.*\})\)", code)
        if call:
            reply["Value"] = self.invoke(request, call[1], call[2])
        elif code.isdigit():
            reply["Value"] = int(code)
        else:
            reply["Error"] = "that is no program"
        return reply

    def invoke(self, request, name, arguments):
        answered = threading.Event()
        with self.lock:
            self.asked += 1
            id = f"call-{self.asked}"
            self.calls[id] = [answered, None]
        request.on_cancel(answered.set)
        self.send({"id": id, "method": "tool", "data": {"name": name, "arguments": arguments}, **self.parent(request)})
        answered.wait()
        return self.calls.pop(id)[1]

    def parent(self, request):
        return {"parent_id": request.id}

    def called(self, frame):
        self.check_token(frame.get("token"), "callback")
        call = self.calls.get(frame.get("id"))
        if call:
            call[1] = frame["data"].get("data")
            call[0].set()
