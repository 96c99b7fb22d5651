package check

import (
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/caisson-dev/caisson/backends/wire"
)

func packs() []clause {
	return []clause{
		rule(clausePack, sectionPacks, "packs/add asks for a source that it lacks, lists the pack's tools, and runs none that it has", drivePack).unprepared().given(clauseBulk),
		rule("pack-source", sectionPacks, "a source has the hash that was announced", drivePackSource).unprepared().given(clauseBulk),
		rule("pack-run", sectionPacks, "execute runs a pack's tool, and nothing that it has started outlives the call", drivePackRun).unprepared().given(clausePack),
		rule("pack-missing", sectionPacks, "a pack that cannot be had is an error", func(t *trial) {
			t.hasPacks()
			t.refuses("there is no such program", wire.MethodPacksAdd, args{"name": "check-missing", "command": []string{"check-no-such-program"}})
		}),
	}
}

const (
	packTool = "check_pack_tool"
	// packSource is a pack that tells by its process id that it has been asked.
	packSource = `read -r asked
case $asked in
*'"list"'*) echo '{"tools":[{"name":"` + packTool + `","description":"asked '$$'","input_schema":{"type":"object"}}]}' ;;
*) sleep 300 </dev/null >/dev/null 2>&1 & echo '{"ok":true,"result":"started '$!'."}' ;;
esac
`
)

func (t *trial) hasPacks() {
	t.needs(wire.CapPacks)
	if t.known.mode == "" {
		t.notOffered("it runs no commands")
	}
}

// takesSource ends the trial unless packs can have a source, and opens an adapter that
// is told what they need.
func (t *trial) takesSource() {
	t.hasPacks()
	t.needs(wire.CapBulk)
	t.told(wire.CapBulk)
}

// pack is the data of a packs/add whose source is packSource, which nobody has had yet.
func (t *trial) pack() (data args, source string) {
	source = packSource + "# " + rand.Text() + "\n"
	return args{"name": "check", "command": []string{"sh", "${source}"}, "sha256": sum(source)}, source
}

// added adds a pack.
func (t *trial) added(data args, source string) json.RawMessage {
	a := t.object("the reply to packs/add", t.must(wire.MethodPacksAdd, data), "need_source:bool")
	t.want(a["need_source"] == true, "packs/add of a source that it does not have must ask for it: %v", a)
	r := t.sendBody(wire.MethodPacksAdd, data, source)
	t.want(r.failed == "", "packs/add with the source failed: %s", r.failed)
	a = t.object("the reply to packs/add", r.data, "tools:list")
	t.want(len(list(a["tools"])) == 1, "packs/add must give the pack's one tool: %v", a)
	described, _ := list(a["tools"])[0].(map[string]any)
	w := wrong(described, "name:string group:string description:string input_schema:object")
	t.want(w == "", "a tool of a pack: %s", w)
	t.want(described["name"] == packTool && described["group"] == "plugins" && strings.HasPrefix(text(described["description"]), "asked "),
		"the tool must be %s of the group plugins, as the pack describes it: %v", packTool, described)
	return r.data
}

func drivePack(t *trial) {
	t.takesSource()
	data, source := t.pack()
	first := described(t.added(data, source))
	again := described(t.must(wire.MethodPacksAdd, data))
	t.want(again != "" && again == first, "packs/add of a pack that it has must reply %q as before, and not run it again: %q", first, again)
	a := t.object("the reply to tools/list", t.must("tools/list", args{}), "tools:list")
	t.want(hasRecord(list(a["tools"]), "name", packTool), "tools/list must have the pack's tool: %v", a)
}

// described is how the first tool of a reply to packs/add is described.
func described(data json.RawMessage) string {
	var added wire.PackAdded
	if json.Unmarshal(data, &added) != nil || len(added.Tools) == 0 {
		return ""
	}
	return added.Tools[0].Description
}

func drivePackSource(t *trial) {
	t.takesSource()
	data, source := t.pack()
	r := t.sendBody(wire.MethodPacksAdd, data, source+"# changed\n")
	t.want(r.failed != "", "a source with another hash than the one announced must be refused: %s", r.data)
}

func drivePackRun(t *trial) {
	t.takesSource()
	t.added(t.pack())
	c := t.execute(packTool, args{}, t.known.mode)
	t.want(c.refused == "", "execute of a pack's tool must run it: %s", c.refused)
	started := regexp.MustCompile(`started (\d+)\.`).FindSubmatch(c.raw)
	t.want(started != nil, "the result must be what the pack answered: %s", c.raw)
	t.want(!t.lives(string(started[1])), "what the pack has started, the process %s, must not live on", started[1])
}
