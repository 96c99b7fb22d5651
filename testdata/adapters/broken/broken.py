#!/usr/bin/env python3
"""An adapter that breaks one clause of the worker protocol: that which is named by
its argument, as "caisson adapter check --list" names it. Without one it breaks none,
and --list names those that it can break.

Each breach is a class below, or a function that changes an adapter which was made.
"""

import os
import select
import sys
import threading

from whole import Body, Whole

import adapter
import files
import processes
from files import Files, Refusal
from processes import Process

BREACHES = {}


def breaks(clause):
    def register(breach):
        BREACHES[clause] = breach
        return breach
    return register


def replies(method, change):
    """An adapter whose replies to a method are changed."""
    class Changed(Whole):
        def handle(self, request):
            data = super().handle(request)
            return change(data, request) if request.method == method else data
    return Changed


def results(tool, change):
    """An adapter whose results of a tool are changed."""
    class Changed(Whole):
        def execute(self, request):
            result = super().execute(request)
            if request.data["call"]["name"] == tool:
                change(result.get("structured_content"), result)
            return result
    return Changed


def without(*members):
    def change(data, _):
        for member in members:
            data.pop(member, None)
        return data
    return change


def setting(**members):
    def change(data, _):
        data.update(members)
        return data
    return change


# Frames.

@breaks("frames-only")
class Prints(Whole):
    def handle(self, request):
        with self.writing:
            self.stdout.write(b"debug: " + request.method.encode() + b"\n")
        return super().handle(request)


@breaks("one-reply")
class RepliesTwice(Whole):
    def answer(self, request, reply):
        super().answer(request, reply)
        if request.method == "process/list":
            self.send(reply)


@breaks("error-text")
class ErrorObject(Whole):
    def refusal(self, id, e):
        return dict(super().refusal(id, e), error={"message": str(e)})


@breaks("unknown-members")
class Strict(Whole):
    def admit(self, id, method, frame):
        if set(frame) - {"id", "method", "token", "data", "body", "raw", "error"}:
            raise Refusal("a member is not known")
        return super().admit(id, method, frame)


@breaks("unknown-method")
class DoesNothing(Whole):
    def admit(self, id, method, frame):
        self.methods.setdefault(method, lambda request: {})
        return super().admit(id, method, frame)


@breaks("missing-id")
class AnswersNobody(Whole):
    def refuse(self, id, e):
        return super().refuse(id, e) if id else self.send({"id": "", "data": {}})


@breaks("duplicate-id")
class SameIds(Whole):
    def check_free(self, id):
        pass


@breaks("unasked-callback")
class AnswersAnswers(Whole):
    def called(self, frame):
        if frame["id"] in self.calls:
            return super().called(frame)
        return self.refuse(frame["id"], Refusal("nothing was asked"))


@breaks("concurrent")
class OneAtATime(Whole):
    one = threading.Lock()

    def execute(self, request):
        with self.one:
            return super().execute(request)


@breaks("cancel")
class ForgetsCancelled(Whole):
    def answer(self, request, reply):
        if not request.cancelled.is_set():
            super().answer(request, reply)


@breaks("cancel-silent")
class ConfirmsCancel(Whole):
    def answer(self, request, reply):
        super().answer(request, reply)
        if request.cancelled.is_set():
            self.send({"id": request.id, "data": {}})


@breaks("cancel-ends-work")
class CancelsTooEarly(Whole):
    gone = set()

    def cancel(self, id):
        request, _ = self.live.get(id, (None, None))
        if request:
            self.gone.add(id)
            self.refuse(id, Refusal("cancelled"))
            later = threading.Timer(60, request.cancel)
            later.daemon = True
            later.start()

    def answer(self, request, reply):
        if request.id not in self.gone:
            super().answer(request, reply)


@breaks("cancel-unknown")
class MindsCancels(Whole):
    def cancel(self, id):
        if id not in self.live:
            raise_at = self.refusal(id, Refusal("there is no such request"))
            return self.send(raise_at)
        return super().cancel(id)


@breaks("malformed")
class ForgivesGarbage(Whole):
    def receive(self, line):
        try:
            super().receive(line)
        except adapter.Malformed as e:
            if len(line) > self.frame_bytes:
                raise
            print(e, file=sys.stderr)


@breaks("long-frame")
class AnyLength(Whole):
    frame_bytes = 1 << 30


@breaks("token-wrong")
class AnyToken(Whole):
    def check_token(self, token, method):
        if not token or method == "initialize":
            super().check_token(token, method)


@breaks("token-missing")
class NoToken(Whole):
    def check_token(self, token, method):
        if token is not None:
            super().check_token(token, method)


@breaks("token-fixed")
class NewToken(Whole):
    def check_token(self, token, method):
        if method == "initialize":
            self.token = token
        else:
            super().check_token(token, method)


# initialize.

@breaks("initialize-reply")
class RootAsGiven(Whole):
    def initialized(self):
        return dict(super().initialized(), root=self.binding["root"])


@breaks("version")
class AnyVersion(Whole):
    def check_version(self, data):
        pass


@breaks("before-initialize")
class TooEarly(Whole):
    def check_bound(self, method):
        if method != "tools/list":
            super().check_bound(method)


@breaks("failed-initialize")
class TriesAgain(Whole):
    def initialize(self, data, token):
        self.failed = False
        return super().initialize(data, token)


@breaks("names")
class AnyName(Whole):
    def check_name(self, member, name):
        pass


@breaks("binding-repeat")
class InitializesOnce(Whole):
    def check_binding(self, data):
        raise Refusal("it is initialized already")


@breaks("binding-immutable")
class AnyBinding(Whole):
    def check_binding(self, data):
        pass


@breaks("binding-environment")
class LosesEnvironment(Whole):
    def check_binding(self, data):
        super().check_binding(data)
        if not data.get("environment"):
            self.processes.environment = {"PATH": os.environ["PATH"]}


@breaks("environment")
class NoEnvironment(Whole):
    def bind(self, data, token):
        reply = super().bind(data, token)
        del self.processes.environment["CAISSON_CHECK"]
        return reply


@breaks("root-made")
class OpenRoot(Whole):
    def make_root(self, binding):
        super().make_root(binding)
        os.chmod(binding["root"], 0o755)


@breaks("root-required")
class AlwaysMakesRoot(Whole):
    def make_root(self, binding):
        super().make_root(dict(binding, require_existing_workspace=None))


@breaks("workspace-removed")
class KeepsRoot(Whole):
    def end(self, code):
        if self.binding:
            self.binding["remove_workspace_on_exit"] = None
        super().end(code)


# execute.

BREACHES["tool-result"] = results("list_files", lambda _, result: result.update(content=[{"type": "blob"}]))


@breaks("unknown-tool")
class AnyTool(Whole):
    def execute(self, request):
        name = request.data["call"]["name"]
        if name not in adapter.TOOLS and name not in self.pack_tools:
            return {"content": []}
        return super().execute(request)


@breaks("arguments")
class AnyArguments(Whole):
    def arguments(self, call):
        try:
            return super().arguments(call)
        except Refusal:
            return {}


@breaks("mode-unknown")
class AnyMode(Whole):
    def mode(self, data):
        return "standard" if data.get("permission_mode") == "check_unknown" else super().mode(data)


@breaks("mode-read-only")
class WritesAnyway(Whole):
    def mode(self, data):
        mode = super().mode(data)
        return "standard" if mode == "read_only" else mode


@breaks("path-outside")
class FollowsLinks(Whole):
    class files_class(Files):
        def resolve(self, name):
            path = os.path.normpath(os.path.join(self.root, name))
            if path != self.root and not path.startswith(self.root + "/"):
                raise Refusal("outside of the workspace")
            return path


BREACHES["tool-read-file"] = results("read_file", without("content_sha256"))
BREACHES["tool-list-files"] = results("list_files", lambda data, _: [e.pop("size") for e in data["entries"]])
BREACHES["tool-grep"] = results("grep", lambda data, _: [m.update(line=m["line"] - 1) for m in data.get("matches", [])])
BREACHES["tool-git"] = results("git", without("duration_ms"))
BREACHES["tool-process"] = results("process", lambda data, _: data.pop("eof", None))
BREACHES["tool-bash"] = results("bash", lambda data, _: data.update(stdout=data["stdout"] + data["stderr"], stderr=""))


@breaks("tool-write-file")
class Overwrites(Whole):
    class files_class(Files):
        def replace(self, file, data, create_only=False):
            return super().replace(file, data)


@breaks("tool-edit-file")
class EditsFirst(Whole):
    class files_class(Files):
        def edit_file(self, path, old_text, new_text, replace_all=False):
            return super().edit_file(path, old_text, new_text, True)


@breaks("tool-glob")
class AbsoluteNames(Whole):
    class files_class(Files):
        def glob(self, pattern, path="", offset=0):
            found = super().glob(pattern, path, offset)
            return dict(found, files=[os.path.join(self.root, f) for f in found["files"]])


@breaks("tool-present-artifact")
class PresentsPath(Whole):
    def execute(self, request):
        result = super().execute(request)
        if request.data["call"]["name"] == "present_artifact":
            part = result["content"][0]
            part["text"] = part["text"].replace('"name": "', '"name": "check-export/')
        return result


@breaks("bash-exit-code")
class ExitIsError(Whole):
    def command_result(self, process, *rest):
        if process.record["exit_code"] > 0:
            raise Refusal(f"exit status {process.record['exit_code']}")
        return super().command_result(process, *rest)


@breaks("bash-stdin")
class OpenStdin(Whole):
    def run_command(self, request, start, title, timeout):
        return super().run_command(request, dict(start, stdin=True), title, timeout)


@breaks("bash-holder")
class WaitsForPipes(Whole):
    def wait_for(self, process, timeout):
        ended = super().wait_for(process, timeout)
        for thread in process.pumps if ended else ():
            thread.join()
        return ended


@breaks("bash-timeout")
class KillsAtTimeout(Whole):
    def wait_for(self, process, timeout):
        if not super().wait_for(process, timeout) and timeout:
            process.kill(9)
            process.wait()
        return process.ended()


@breaks("bash-cwd")
class OneDirectory(Whole):
    def bash(self, request, mode, command, cwd="", **more):
        return super().bash(request, mode, command, **more)


@breaks("one-world")
class OwnFiles(Whole):
    class files_class(Files):
        def __init__(self, *all):
            super().__init__(*all)
            self.own = set()

        def replace(self, file, *all):
            self.own.add(file)
            return super().replace(file, *all)

        def load(self, path):
            if path not in self.own and os.path.exists(path):
                raise Refusal("there is no such file", "notFound")
            return super().load(path)


# process/*.

@breaks("process-announced")
class CannotStart(Whole):
    def process_start(self, request):
        raise Refusal("not yet", "unsupported")


BREACHES["process-record"] = replies("process/start", without("owner_id"))
BREACHES["process-operation"] = replies("process/list", lambda data, _: [without("operation_id")(p, _) for p in data])
BREACHES["process-get"] = replies("process/get", lambda data, _: dict(data, exit_code=max(0, data["exit_code"])))
BREACHES["process-exit"] = replies("process/get", lambda data, _: dict(data, exit_code=-1))
BREACHES["process-completion"] = replies("process/input_available", lambda data, _: {"available": data})


@breaks("process-start")
class CommandFirst(Whole):
    def process_start(self, request):
        if request.data.get("command"):
            request.data.pop("argv", None)
        return super().process_start(request)


@breaks("process-environment")
class OneEnvironment(Whole):
    def process_start(self, request):
        request.data.pop("environment", None)
        return super().process_start(request)


@breaks("process-offsets")
class OffsetsOfTheRead(Whole):
    def process_read(self, request):
        r = super().process_read(request)
        if (request.data.get("options") or {}).get("OffsetBytes") is not None:
            r.update(StartOffset=0, EndOffset=r["EndOffset"] - r["StartOffset"])
        return r


@breaks("process-tail")
class ReadsHead(Whole):
    def process_read(self, request):
        options = request.data.get("options") or {}
        request.data["options"] = dict(options, OffsetBytes=options.get("OffsetBytes") or 0)
        return super().process_read(request)


@breaks("process-utf8")
class ReadsLatin1(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        Process.text = lambda self, piece: piece.decode("latin-1")


@breaks("process-wait")
class WholeSeconds(Whole):
    def seconds(self, nanoseconds):
        return nanoseconds // 1_000_000_000


@breaks("process-write")
class Shouts(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        write = Process.write
        Process.write = lambda self, data: write(self, data.upper())


@breaks("process-stop")
class StopsOne(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        Process.kill = lambda self, number: self.child.send_signal(number)


@breaks("process-resize")
class OneSize(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        self.methods["process/resize"] = self.methods["process/get"]


@breaks("process-events")
class NeverStarts(Whole):
    def emit(self, event):
        if event["Type"] != "started":
            super().emit(event)


@breaks("process-cleanup")
class KeepsCleaned(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        self.methods["process/cleanup"] = lambda r: {
            "Cleaned": [p for p in self.processes.list() if p["status"] in processes.FINAL]}


@breaks("process-unknown")
class StopsNothing(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        stop = self.methods["process/stop"]
        self.methods["process/stop"] = lambda r: {} if r.data["id"] not in self.processes.all else stop(r)


@breaks("process-session")
class AnySession(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        get = self.methods["process/get"]
        self.methods["process/get"] = lambda r: get(r) if not self.foreign(r.data["id"]) else {
            "id": r.data["id"], "status": "running", "exit_code": -1}

    def foreign(self, id):
        return id.startswith("p-") and id not in self.processes.all


# export/*.

@breaks("export-read")
class LargePieces(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        files.CHUNK_BYTES = 1 << 20


@breaks("export-empty")
class NeverEnds(Whole):
    class files_class(Files):
        def export_read(self, token, offset=0):
            piece = super().export_read(token, offset)
            return dict(piece, eof=piece["eof"] and (offset > 0 or piece["data"] != ""))


@breaks("export-immutable")
class NoCopy(Whole):
    class files_class(Files):
        def present_artifact(self, path):
            result = super().present_artifact(path)
            token = next(reversed(self.exports))
            os.unlink(self.exports[token])
            os.symlink(self.resolve(path), self.exports[token])
            return result


@breaks("export-close")
class NeverCloses(Whole):
    class files_class(Files):
        def export_close(self, token):
            return {}


# run_code.

@breaks("run-code")
class ProgramsFail(Whole):
    def run_code(self, request):
        reply = super().run_code(request)
        if reply["Error"]:
            raise Refusal(reply["Error"])
        return reply


@breaks("run-code-callback")
class NoParent(Whole):
    def parent(self, request):
        return {}


# Jobs.

@breaks("job")
class GivesInputsBack(Whole):
    def comes_back(self, file, aside):
        return super().comes_back(file, ())


@breaks("job-inputs")
class TakesAnyPath(Whole):
    def put(self, directory, path, rest, size):
        return super().put(directory, path.replace("..", "up").lstrip("/"), rest, size)


@breaks("job-ends")
class EndsOneProcess(Whole):
    def end_job(self, process):
        process.kill()


# Packs.

@breaks("pack")
class AsksAgain(Whole):
    def known_pack(self, name):
        return None


@breaks("pack-source")
class AnyHash(Whole):
    def check_hash(self, source, sha256):
        pass


@breaks("pack-run")
class PackLeavesProcesses(Whole):
    def end_pack(self, process):
        process.kill()


@breaks("pack-missing")
class PackOfNothing(Whole):
    def ask_pack(self, request, argv, asked):
        try:
            return super().ask_pack(request, argv, asked)
        except Refusal:
            return {"tools": []}


# Extensions and the end.

BREACHES["tools-list"] = replies("tools/list", lambda data, _: {"tools": data["tools"] + [{"description": "it has no name"}]})
BREACHES["bulk"] = replies("export/stream", lambda body, _: Body(body.content[:1000]))
BREACHES["files"] = replies("fs/stat", without("size"))


@breaks("error-detail")
class NoKind(Whole):
    def refusal(self, id, e):
        return dict(super().refusal(id, e), detail={"hint": ""})


@breaks("close-stdin")
class NeverClosesStdin(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        Process.close_stdin = lambda self: None


@breaks("signal")
class NamesNoSignal(Whole):
    def __init__(self, *all):
        super().__init__(*all)
        snapshot = Process.snapshot
        Process.snapshot = lambda self, **other: without("signal")(snapshot(self, **other), None)


@breaks("output-closed")
class NeverClosed(Whole):
    def emit(self, event):
        if event["Type"] != "updated":
            super().emit(event)


@breaks("output-limit")
class NoLimit(Whole):
    def execute(self, request):
        request.data.pop("max_output_bytes", None)
        return super().execute(request)


@breaks("side-chat")
class AnyActor(Whole):
    def execute(self, request):
        request.data.pop("actor_kind", None)
        return super().execute(request)


@breaks("shutdown")
class NeverShutsDown(Whole):
    def end(self, code):
        if threading.current_thread() is threading.main_thread():
            super().end(code)  # the end of the input


@breaks("end-of-input")
class WaitsForRequests(Whole):
    def cancel_all(self, left):
        pass


@breaks("exit-code")
class ExitsWithOne(Whole):
    def end(self, code):
        super().end(1)


@breaks("processes-end")
class LeavesProcesses(Whole):
    def finish(self):
        pass


@breaks("streams-end")
class LeavesStreams(Whole):
    held = False

    def initialize(self, data, token):
        reply = super().initialize(data, token)
        if not self.held:
            self.held = True
            if os.fork() == 0:
                hold(self.stdout.fileno())
        return reply


def hold(stream):
    """Hold a stream, and nothing else, in a session of its own until nobody reads it."""
    os.setsid()
    os.dup2(stream, 0)
    os.closerange(1, 1024)
    ended = select.poll()
    ended.register(0, 0)  # errors, which are always told
    ended.poll()
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(BREACHES))
    else:
        adapter.main(BREACHES[sys.argv[1]] if len(sys.argv) > 1 else Whole)
