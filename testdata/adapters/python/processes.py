"""Processes of one session: real ones, each the leader of its own group."""

import datetime
import fcntl
import os
import pty
import secrets
import signal
import struct
import subprocess
import termios
import threading
import time

from files import Refusal

KEPT_BYTES = 8 << 20  # output of one process, its last
UNSET = "0001-01-01T00:00:00Z"
GRACE = 2.0  # seconds between SIGTERM and SIGKILL, and after it
DRAIN = 2.0  # seconds for what is still in the pipes when a process ended
FINAL = ("stopped", "failed")


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Output:
    """The last bytes that a process wrote, by their offset among all it ever wrote."""

    def __init__(self, changed):
        self.base, self.data, self.changed = 0, bytearray(), changed

    def total(self):
        return self.base + len(self.data)

    def write(self, data):
        with self.changed:
            self.data += data
            over = max(0, len(self.data) - KEPT_BYTES)
            del self.data[:over]
            self.base += over
            self.changed.notify_all()


class Process:
    def __init__(self, registry, request, argv, title):
        self.id = "p-" + secrets.token_hex(10)
        self.changed = threading.Condition()
        self.output = Output(self.changed)
        self.apart = {"stdout": Output(self.changed), "stderr": Output(self.changed)}
        self.stopping = self.admitted = self.dropped = False
        self.pumps = []
        self.read_to = 0
        self.record = {
            "id": self.id, "owner_kind": "main_agent", "owner_id": request["actor"],
            "root_thread_id": registry.session, "lifecycle": request.get("lifecycle") or "session",
            "status": "running", "command": title, "cwd": request["cwd"], "started_at": now(),
            "updated_at": now(), "stopped_at": UNSET, "exit_code": -1,
            "sandbox_mode": request.get("permission_mode", ""), "output_closed": False}
        if request.get("argv"):
            self.record["argv"] = request["argv"]
        if request.get("label"):
            self.record["label"] = request["label"]
        if request["actor"] != registry.session:
            self.record["owner_kind"] = "subagent"
        if request.get("operation_id"):
            self.record["operation_id"] = request["operation_id"]
        self.terminal = None
        tty = request.get("tty")
        try:
            self.spawn(argv, request, tty)
        except OSError as e:
            raise Refusal(f"{argv[0]}: {e.strerror}") from e
        self.record["pid"] = self.record["pgid"] = self.child.pid

    def spawn(self, argv, request, tty):
        options = {"cwd": request["cwd"], "env": request["environment"], "start_new_session": True}
        if tty:
            self.terminal, theirs = pty.openpty()
            self.set_size(tty["cols"], tty["rows"])
            self.record["tty"] = tty
            try:
                self.child = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, **options)
            finally:
                os.close(theirs)
            self.pump(self.terminal, self.output)
            return
        stdin = subprocess.PIPE if request.get("stdin", True) else subprocess.DEVNULL
        self.child = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      bufsize=0, **options)
        self.pump(self.child.stdout.fileno(), self.output, self.apart["stdout"])
        self.pump(self.child.stderr.fileno(), self.output, self.apart["stderr"])

    def pump(self, fd, *outputs):
        def run():
            try:
                while data := os.read(fd, 65536):
                    for output in outputs:
                        output.write(data)
            except OSError:
                pass  # the other end of a terminal is closed

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.pumps.append(thread)

    def snapshot(self, **other):
        with self.changed:
            return {**self.record, "log_base_offset": self.output.base, "total_bytes": self.output.total(), **other}

    def ended(self):
        return self.record["status"] in FINAL

    def settle(self):
        """Waits for the end of the process, and gives the event that tells of it."""
        code = self.child.wait()
        deadline = time.monotonic() + DRAIN
        for thread in self.pumps:
            thread.join(max(0, deadline - time.monotonic()))
        with self.changed:
            cause = "requested_stop" if self.stopping else "natural_exit"
            status = "stopped" if code == 0 or self.stopping else "failed"
            self.record.update(status=status, exit_code=code if code >= 0 else 128 - code,
                               stopped_at=now(), updated_at=now(), terminal_cause=cause)
            if code < 0:
                self.record["signal"] = signal.Signals(-code).name
            self.changed.notify_all()
        return {"Type": status, "Cause": cause, "Process": self.snapshot()}

    def wait(self, timeout=None):
        with self.changed:
            return self.changed.wait_for(self.ended, timeout)

    def kill(self, number):
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass

    def stop(self):
        with self.changed:
            if self.ended():
                return
            self.stopping = True
            self.record["status"] = "stopping"
        self.kill(signal.SIGTERM)
        if not self.wait(GRACE):
            self.kill(signal.SIGKILL)
            if not self.wait(GRACE):
                raise Refusal(f"process {self.child.pid} does not end", "internal")
        self.kill(signal.SIGKILL)  # what it left in its group

    def signal(self, name):
        try:
            number = signal.Signals["SIG" + name.removeprefix("SIG")]
        except KeyError as e:
            raise Refusal(f"there is no signal {name}") from e
        self.kill(number)

    def close_stdin(self):
        if self.terminal is not None:
            self.write(b"\x04")
        elif self.child.stdin is not None:
            self.child.stdin.close()

    def write(self, data):
        try:
            if self.terminal is not None:
                os.write(self.terminal, data)
            elif self.child.stdin is None:
                raise ValueError
            else:
                self.child.stdin.write(data)
        except (OSError, ValueError) as e:
            raise Refusal("the process takes no input, or not any more", "invalidParams") from e

    def set_size(self, cols, rows):
        if self.terminal is None:
            raise Refusal("the process has no terminal", "invalidParams")
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.record["tty"] = {"cols": cols, "rows": rows}

    def text(self, piece):
        return piece.decode("utf-8", "replace")

    def read(self, offset, limit, wait, dwell, cancelled):
        """Output from an offset, or the tail; wait and dwell are seconds."""
        begun = time.monotonic()
        with self.changed:
            there = lambda: self.output.total() > offset or self.ended() or cancelled.is_set()
            timed_out = False
            if offset is not None:
                timed_out = not self.changed.wait_for(there, wait) and wait > 0
                if dwell and not timed_out:
                    self.changed.wait_for(lambda: self.ended() or cancelled.is_set(), dwell)
            data, base = self.output.data, self.output.base
            start = max(base, self.output.total() - limit) if offset is None else min(max(base, offset), self.output.total())
            piece = bytes(data[start - base:start - base + limit])
            truncated = start > (offset or 0)
            total = self.output.total()
            self.read_to = max(self.read_to, start + len(piece))
        return {"Process": self.snapshot(), "Output": self.text(piece), "StartOffset": start,
                "EndOffset": start + len(piece), "TotalBytes": total, "Truncated": truncated,
                "TimedOut": timed_out, "Duration": int((time.monotonic() - begun) * 1e9)}


class Processes:
    """The registry: what a session started and has not cleaned up."""

    def __init__(self, session, root, environment, emit):
        self.session, self.root, self.environment, self.emit = session, root, environment, emit
        self.all, self.lock, self.closed = {}, threading.Lock(), False

    def start(self, request):
        """Starts a process. It is nobody's business until it is admitted."""
        command, argv = request.get("command"), request.get("argv")
        if bool(command) == bool(argv):
            raise Refusal("a start has either command or argv")
        request = dict(request, environment={**self.environment, **(request.get("environment") or {})})
        with self.lock:
            if self.closed:
                raise Refusal("the adapter is ending", "cancelled")
            process = Process(self, request, argv or ["/bin/sh", "-c", command], command or " ".join(argv))
            self.all[process.id] = process
        threading.Thread(target=self.follow, args=(process,), daemon=True).start()
        return process

    def admit(self, process, always=False):
        """Makes a process one that the host sees, unless it has ended before."""
        with process.changed:
            if process.ended() and not always and not process.record.get("operation_id"):
                return False
            self.emit({"Type": "started", "Process": process.snapshot(status="running")})
            process.admitted = True
            process.changed.notify_all()
        return True

    def follow(self, process):
        event = process.settle()
        with process.changed:
            process.changed.wait_for(lambda: process.admitted or process.dropped)
        if process.dropped:
            return
        self.emit(event)
        for thread in process.pumps:
            thread.join()
        process.record["output_closed"] = True
        self.emit({"Type": "updated", "Process": process.snapshot()})

    def drop(self, process):
        """Forgets a process that the host never saw."""
        with self.lock:
            del self.all[process.id]
        with process.changed:
            process.dropped = True
            process.changed.notify_all()

    def get(self, id):
        with self.lock:
            process = self.all.get(id)
        if process is None or not process.admitted:
            raise Refusal(f"there is no process {id} in this session", "processNotFound")
        return process

    def list(self):
        with self.lock:
            return [p.snapshot() for p in self.all.values() if p.admitted]

    def cleanup(self):
        gone = []
        for process in list(self.all.values()):
            if process.admitted and process.ended():
                with self.lock:
                    del self.all[process.id]
                gone.append(process.snapshot())
                self.emit({"Type": "cleaned_up", "Process": gone[-1]})
        return {"Cleaned": gone}

    def close(self):
        """Ends every process. It returns when none is left."""
        with self.lock:
            self.closed = True
            left = list(self.all.values())
        threads = [threading.Thread(target=p.stop) for p in left]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
