"""packs/add: the tools of executables that answer two actions, by JSON on their stdin
and stdout."""

import hashlib
import json
import os

from files import Refusal
from jobs import Jobs


class Packs:
    """What answers packs/add for an adapter that runs jobs."""

    def __init__(self, *all):
        super().__init__(*all)
        self.packs, self.pack_tools = {}, {}  # by their names
        self.methods["packs/add"] = self.packs_add
        self.methods["tools/list"] = lambda r: {"tools": [t for p in self.packs.values() for t in p["tools"]]}

    def packs_add(self, request):
        name, command, sha256 = (request.data.get(m) for m in ("name", "command", "sha256"))
        known = self.known_pack(name)
        if known:
            if known["made of"] != (command, sha256):
                raise Refusal(f"there is another pack {name}")
            return {"tools": known["tools"]}
        file = os.path.join(self.state, f"pack-{sha256}") if sha256 else None
        if file and not os.path.exists(file):
            source = request.data.get("body")
            if source is None:
                return {"need_source": True}
            self.check_hash(source, sha256)
            with open(file, "xb", opener=lambda p, flags: os.open(p, flags, 0o500)) as f:
                f.write(source)
        argv = self.pack_argv(command, file)
        tools = [dict(t, group="plugins") for t in self.ask_pack(request, argv, {"action": "list"})["tools"]]
        self.packs[name] = {"made of": (command, sha256), "tools": tools}
        self.pack_tools.update((t["name"], argv) for t in tools)
        return {"tools": tools}

    def known_pack(self, name):
        return self.packs.get(name)

    def check_hash(self, source, sha256):
        if hashlib.sha256(source).hexdigest() != sha256:
            raise Refusal("the source has another hash")

    def pack_argv(self, command, file):
        if file and not any("${source}" in word for word in command):
            return [file, *command[1:]]
        return [word.replace("${source}", file or "") for word in command]

    def ask_pack(self, request, argv, asked):
        try:
            _, out, _, _ = self.run_job(request, argv, self.files.root, json.dumps(asked).encode() + b"\n", self.end_pack)
            return json.loads(out)
        except (OSError, ValueError) as e:
            raise Refusal(f"the pack cannot be had: {e}", "unsupported") from e

    def end_pack(self, process):
        Jobs.end_job(self, process)

    def execute(self, request):
        name = request.data["call"]["name"]
        if name not in self.pack_tools:
            return super().execute(request)
        self.check_unconfined(self.mode(request.data))
        asked = {"action": "run", "name": name, "arguments": self.arguments(request.data["call"])}
        answer = self.ask_pack(request, self.pack_tools[name], asked)
        said = answer.get("result") if answer["ok"] else answer["error"]
        return {"content": [{"type": "text", "text": str(said)}], "is_error": not answer["ok"]}
