"""job/run: one program to its end, in a directory that is gone afterwards."""

import fnmatch
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import threading

from files import Refusal

GRACE = 5.0  # seconds for what was killed, on a busy machine

class Jobs:
    """What answers job/run for an adapter with files, and bodies."""

    def job_run(self, request):
        job, rest = request.data, request.data.get("body", b"")
        self.mode(job)
        fresh = tempfile.mkdtemp(dir=self.state)
        try:
            directory = self.files.resolve(job["cwd"]) if job.get("cwd") else fresh
            aside, argv = set(), job.get("argv")
            if job.get("script"):
                script, rest = os.path.join(fresh, "script"), self.put(fresh, "script", rest, job["script"]["bytes"])
                argv = [job["script"]["interpreter"], script]
                aside.add(script)
            size = job.get("stdin_bytes", 0)
            stdin, rest = rest[:size], rest[size:]
            for given in job.get("inputs") or []:
                rest = self.put(directory, given["path"], rest, given["bytes"])
                aside.add(os.path.join(directory, given["path"]))
            return self.job_done(self.run_job(request, argv, directory, stdin), directory, aside, job)
        finally:
            shutil.rmtree(fresh)

    def put(self, directory, path, rest, size):
        name = os.path.normpath(path)
        if os.path.isabs(name) or name.split("/")[0] in ("..", "."):
            raise Refusal(f"{path} leads out of the job's directory", "invalidParams")
        file = os.path.join(directory, name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb", opener=lambda p, flags: os.open(p, flags, 0o700)) as f:
            f.write(rest[:size])
        return rest[size:]

    def run_job(self, request, argv, directory, stdin, end=None):
        job, end = request.data, end or self.end_job
        lives, held = os.pipe()  # at its end when nobody is left who was born of the job
        process = subprocess.Popen(
            argv, cwd=directory, env={**self.processes.environment, **job.get("environment", {})}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(held,))
        os.close(held)
        late = threading.Event()
        request.on_cancel(lambda: end(process))
        limit = threading.Timer(job.get("timeout_ms", 0) / 1000 or threading.TIMEOUT_MAX, lambda: (late.set(), end(process)))
        limit.daemon = True
        limit.start()
        pipes = threading.Thread(target=process.wait)
        pipes.start()  # the end of the program is the end of what holds its pipes
        ended = threading.Thread(target=lambda: (pipes.join(), end(process)))
        ended.start()
        out, err = process.communicate(stdin)
        ended.join()
        limit.cancel()
        select.select([lives], [], [], GRACE)  # who was killed may take a moment to end
        os.close(lives)
        return process.returncode, out, err, late.is_set()

    def end_job(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def job_done(self, result, directory, aside, job):
        code, out, err, late = result
        done = {"stdout_bytes": len(out), "exit_code": max(code, -1), "timed_out": late, "files": []}
        if code < 0:
            done["signal"] = signal.Signals(-code).name
        wanted = job.get("collect") or ([] if job.get("cwd") else ["*"])
        for at, _, names in os.walk(directory):
            for name in sorted(names):
                file = os.path.join(at, name)
                path = os.path.relpath(file, directory)
                if self.comes_back(file, aside) and any(fnmatch.fnmatch(path, glob) for glob in wanted):
                    done["files"].append({"path": path, "size": os.path.getsize(file), "token": self.keep(file)})
        return done, out + err

    def keep(self, file):
        token = secrets.token_hex(16)
        copy = shutil.copyfile(file, os.path.join(self.state, token))
        with self.files.lock:
            self.files.exports[token] = copy
        return token

    def comes_back(self, file, aside):
        return file not in aside and os.path.isfile(file) and not os.path.islink(file)
