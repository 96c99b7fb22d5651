"""The files of one directory: the tools that read and write them, and exports."""

import base64
import difflib
import glob
import hashlib
import json
import os
import re
import secrets
import stat
import tempfile
import threading
import time
from urllib.parse import quote_from_bytes, unquote_to_bytes

PAGE = 1000  # entries, matches or names in one answer
LINES = 2000  # lines of a file in one answer
EXPORT_BYTES = 256 << 20  # of one export
CHUNK_BYTES = 256 << 10  # of one piece of an export

IMAGES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


class Refusal(Exception):
    """What the host is told in an error. kind and hint are for caisson.errors.v1."""

    def __init__(self, text, kind="invalidParams", hint="", path=""):
        super().__init__(text)
        self.detail = {"kind": kind, "hint": hint, "path": path, "retryable": False}


def to_name(path):
    """A path as the protocol writes it."""
    raw = os.fsencode(path)
    try:
        if not raw.startswith(b"bytes:"):
            return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    return "bytes:" + quote_from_bytes(raw)


def from_name(name):
    if name.startswith("bytes:"):
        return os.fsdecode(unquote_to_bytes(name[len("bytes:"):]))
    return name


def page(items, offset, member):
    if offset < 0:
        raise Refusal("offset is negative")
    part = items[offset:offset + PAGE]
    return {member: part, "total": len(items), "offset": offset, "returned_count": len(part),
            "has_more": offset + len(part) < len(items)}


class Files:
    def __init__(self, root, state):
        self.root = root
        self.state = state  # where the copies of exports are kept
        self.exports = {}
        self.lock = threading.Lock()  # of exports, and of one writer at a time

    def resolve(self, name):
        """The path that a name means. It never leaves the root, by no link either."""
        if "\0" in name:
            raise Refusal("a path holds a NUL")
        path = os.path.realpath(os.path.join(self.root, from_name(name)))
        if path != self.root and not path.startswith(self.root.rstrip("/") + "/"):
            raise Refusal(f"{name} is outside of the workspace", "pathOutsideRoot", path=name)
        return path

    def relative(self, path):
        return to_name(os.path.relpath(path, self.root))

    def load(self, path):
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise Refusal(f"{self.relative(path)} is no regular file")
            with open(path, "rb") as f:
                return f.read()
        except OSError as e:
            raise Refusal(f"{self.relative(path)}: {e.strerror}", "invalidParams") from e

    # The tools. Each takes its arguments and gives the result's object, or the
    # whole result where that is more.

    def read_file(self, path, offset=1, limit=LINES, continuation=None, encoding="utf8",
                  byte_offset=0, byte_limit=1 << 20):
        file = self.resolve(path)
        data = self.load(file)
        if encoding == "base64":
            piece = data[byte_offset:byte_offset + byte_limit]
            return {"path": self.relative(file), "encoding": "base64",
                    "content": base64.b64encode(piece).decode(), "byte_offset": byte_offset,
                    "num_bytes": len(piece), "size": len(data),
                    "content_sha256": hashlib.sha256(data).hexdigest(),
                    "truncated": byte_offset + len(piece) < len(data)}
        if encoding != "utf8":
            raise Refusal("encoding is utf8 or base64")
        for mime_type, magic in IMAGES.items():
            if magic.match(data):
                return {"content": [{"type": "image", "mime_type": mime_type,
                                     "data": base64.b64encode(data).decode()}]}
        first = int(continuation) if continuation is not None else offset
        if first < 1 or limit < 1:
            raise Refusal("offset and limit begin at 1")
        lines = data.decode("utf-8", "replace").splitlines(keepends=True)
        part = lines[first - 1:first - 1 + limit]
        result = {"path": self.relative(file), "content": "".join(part), "start_line": first,
                  "content_sha256": hashlib.sha256(data).hexdigest(), "num_lines": len(part),
                  "total_lines": len(lines), "truncated": first - 1 + len(part) < len(lines)}
        if result["truncated"]:
            result["continuation"] = str(first + len(part))
        return result

    def write_file(self, path, content, create_only=False, encoding="utf8"):
        data = base64.b64decode(content) if encoding == "base64" else content.encode()
        with self.lock:
            return self.replace(self.resolve(path), data, create_only)

    def replace(self, file, data, create_only=False):
        """Writes a file whole or not at all."""
        old = self.load(file) if os.path.lexists(file) else None
        if old is not None and create_only:
            raise Refusal(f"{self.relative(file)} is there already", "invalidParams")
        temporary = None
        try:
            os.makedirs(os.path.dirname(file), exist_ok=True)
            fd, temporary = tempfile.mkstemp(dir=os.path.dirname(file), prefix=".write-")
            with open(fd, "wb") as f:
                f.write(data)
            os.chmod(temporary, 0o644 if old is None else stat.S_IMODE(os.stat(file).st_mode))
            os.replace(temporary, file)
        except OSError as e:
            if temporary:
                os.unlink(temporary)
            raise Refusal(f"{self.relative(file)}: {e.strerror}") from e
        diff = difflib.unified_diff((old or b"").decode("utf-8", "replace").splitlines(True),
                                    data.decode("utf-8", "replace").splitlines(True), "old", "new")
        result = {"path": self.relative(file), "written_bytes": len(data),
                  "new_file_sha": hashlib.sha256(data).hexdigest(), "diff": "".join(diff)}
        if old is not None:
            result["old_file_sha"] = hashlib.sha256(old).hexdigest()
        return result

    def edit_file(self, path, old_text, new_text, replace_all=False):
        with self.lock:
            file = self.resolve(path)
            data = self.load(file)
            count = data.count(old_text.encode()) if old_text else 0
            if count == 0:
                raise Refusal("old_text is not in the file", "invalidParams")
            if count > 1 and not replace_all:
                raise Refusal(f"old_text is {count} times in the file", "invalidParams")
            result = self.replace(file, data.replace(old_text.encode(), new_text.encode()))
        result["replacements"] = count
        return result

    def list_files(self, path="", offset=0):
        directory = self.resolve(path)
        try:
            found = sorted(os.scandir(directory), key=lambda e: os.fsencode(e.name))
            entries = [self.entry(e) for e in found]
        except OSError as e:
            raise Refusal(f"{path}: {e.strerror}", "invalidParams") from e
        return {"path": self.relative(directory), **page(entries, offset, "entries")}

    def entry(self, e):
        s = e.stat(follow_symlinks=False)
        modified = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(s.st_mtime))
        return {"name": to_name(e.name), "path": self.relative(e.path), "is_dir": e.is_dir(follow_symlinks=False),
                "size": s.st_size, "mode": f"{stat.S_IMODE(s.st_mode):04o}", "mtime": modified}

    def grep(self, pattern, path="", include=None, output_mode="content", context=0, before=0,
             after=0, ignore_case=False, offset=0):
        if output_mode not in ("content", "files_with_matches", "count"):
            raise Refusal("output_mode is content, files_with_matches or count")
        try:
            expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        except re.error as e:
            raise Refusal(f"pattern: {e}") from e
        matches, counts = [], []
        for file in self.walk(self.resolve(path), include):
            lines = self.load(file).decode("utf-8", "replace").splitlines()
            hits = [i for i, line in enumerate(lines) if expression.search(line)]
            shown = sorted({j for i in hits for j in range(i - (before or context), i + (after or context) + 1)
                            if 0 <= j < len(lines)})
            matches += [{"path": self.relative(file), "line": i + 1, "text": lines[i]} for i in shown]
            if hits:
                counts.append({"path": self.relative(file), "count": len(hits)})
        items, member = {"content": (matches, "matches"), "count": (counts, "counts"),
                         "files_with_matches": ([c["path"] for c in counts], "files")}[output_mode]
        return {"output_mode": output_mode, **page(items, offset, member)}

    def walk(self, top, include):
        if os.path.isfile(top):
            yield top
        for directory, directories, names in os.walk(top):
            directories[:] = sorted(d for d in directories if d != ".git")
            for name in sorted(names):
                file = os.path.join(directory, name)
                if os.path.islink(file) or not os.path.isfile(file):
                    continue
                if include is None or glob.fnmatch.fnmatch(name, include):
                    yield file

    def glob(self, pattern, path="", offset=0):
        top = self.resolve(path)
        found = sorted(glob.glob(pattern, root_dir=top, recursive=True))
        files = [os.path.join(top, f) for f in found]
        inside = [self.relative(f) for f in files if os.path.isfile(f) and os.path.realpath(f).startswith(self.root)]
        return page(inside, offset, "files")

    def present_artifact(self, path):
        file = self.resolve(path)
        data = self.load(file)
        if len(data) > EXPORT_BYTES:
            raise Refusal("the file is larger than 256 MiB", "artifactTooLarge")
        token = secrets.token_hex(16)
        copy = os.path.join(self.state, token)
        with open(copy, "wb") as f:
            f.write(data)
        with self.lock:
            self.exports[token] = copy
        offer = {"execution_export": token, "name": to_name(os.path.basename(file)), "size": len(data)}
        return {"content": [{"type": "text", "text": json.dumps(offer)}]}

    # export/*

    def export(self, token):
        with self.lock:
            if token not in self.exports:
                raise Refusal("there is no such export", "artifactNotFound")
            return self.exports[token]

    def export_read(self, token, offset=0):
        with open(self.export(token), "rb") as f:
            f.seek(offset)
            data = f.read(CHUNK_BYTES)
            end = f.tell() >= os.fstat(f.fileno()).st_size
        return {"data": base64.b64encode(data).decode(), "eof": end}

    def export_close(self, token):
        os.unlink(self.export(token))
        with self.lock:
            del self.exports[token]
        return {}
