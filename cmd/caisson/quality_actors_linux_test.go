package main

import "github.com/caisson-dev/caisson/rpc/protocol"

// testActorsOfCommands: whatever way an actor's command becomes a process, it is
// that actor's; a side chat does not widen its rights by asking, and nobody passes
// for the main agent.
func testActorsOfCommands(w *work) {
	id := w.session.ID
	actors := []protocol.Actor{
		{ID: id, Kind: protocol.ActorMain},
		{ID: "helper", Kind: protocol.ActorSubagent},
		{ID: "chat", Kind: protocol.ActorSideChat},
	}
	as := func(a protocol.Actor) func(*protocol.ToolCallParams) {
		return func(p *protocol.ToolCallParams) { p.Actor = &a }
	}
	for _, a := range actors {
		for what, args := range map[string]members{
			"in the background": {"command": "sleep 1000", "run_in_background": true},
			"adopted":           {"command": "sleep 1000", "timeout_seconds": 1},
		} {
			r, err := w.try("bash", args, as(a))
			got := into[struct {
				Process string `json:"promoted_process_id"`
			}](w, r)
			if err != nil || got.Process == "" {
				w.Errorf("%s, %s: %s, %v", a.Kind, what, r.StructuredContent, explain(err))
				continue
			}
			if owner := w.process(got.Process).Owner; owner.Kind != a.Kind || owner.ID != a.ID {
				w.Errorf("%s, %s: the owner is %+v", a.Kind, what, owner)
			}
			// The tool tells the same, and reads for everybody.
			for _, reader := range actors {
				r, err := w.try("process", members{"action": "update", "process_id": got.Process}, as(reader))
				told := into[struct {
					Process struct {
						OwnerID   string `json:"owner_id"`
						OwnerKind string `json:"owner_kind"`
					}
				}](w, r)
				if err != nil || told.Process.OwnerID != a.ID || (told.Process.OwnerKind == "main_agent") != (a.Kind == protocol.ActorMain) {
					w.Errorf("%s, %s, told to %s: %s, %v", a.Kind, what, reader.Kind, r.StructuredContent, explain(err))
				}
			}
			if _, err := w.ProcessStop(w.ctx(), w.named(got.Process)); err != nil {
				w.Error(explain(err))
			}
		}
	}

	chat := actors[2]
	for _, mode := range []protocol.PermissionMode{"", protocol.ModeReadOnly, protocol.ModeStandard, protocol.ModeUnconfined} {
		r, err := w.try("bash", members{"command": "echo x > of-a-chat"}, as(chat), func(p *protocol.ToolCallParams) { p.PermissionMode = mode })
		if err == nil && into[ran](w, r).ExitCode == 0 {
			w.Errorf("a side chat in %q writes: %s", mode, r.StructuredContent)
		}
		p, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: id, Command: "echo x > of-a-chat", Actor: &chat, PermissionMode: mode})
		if err == nil {
			if end := w.over(p.Process.ID); end.ExitCode == nil || *end.ExitCode == 0 {
				w.Errorf("a process of a side chat in %q writes: %+v", mode, end)
			}
		}
		if r, err := w.try("git", members{"subcommand": "init", "args": []string{"repo-of-a-chat"}}, as(chat), func(p *protocol.ToolCallParams) { p.PermissionMode = mode }); err == nil && into[ran](w, r).ExitCode == 0 {
			w.Errorf("git of a side chat in %q writes", mode)
		}
	}
	if got := w.sh("ls -d *of-a-chat* 2>/dev/null || true"); got != "" {
		w.Errorf("a side chat made %q", got)
	}

	for _, kind := range []protocol.ActorKind{protocol.ActorSubagent, protocol.ActorSideChat} {
		for _, name := range []string{id, ""} {
			impostor := protocol.Actor{ID: name, Kind: kind}
			_, err := w.try("bash", members{"command": "true"}, as(impostor))
			_, startErr := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: id, Command: "true", Actor: &impostor})
			for what, err := range map[string]error{"a call": err, "a start": startErr} {
				if e := answerOf(err); e == nil || e.Code != protocol.CodeInvalidParams || e.Data.Path != "actor.id" {
					w.Errorf("%s as %s %q: %v", what, kind, name, explain(err))
				}
			}
		}
	}
}
