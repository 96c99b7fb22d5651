package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"os"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// demo is one play of the main job.
type demo struct {
	client     *client.Client
	transcript *transcript
	session    string
}

// call makes one request and prints both ends of it.
func (d *demo) call(ctx context.Context, method string, params, result any) error {
	d.transcript.sent(method, params)
	var raw json.RawMessage
	if err := d.client.Call(ctx, method, params, &raw); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	d.transcript.received(raw)
	if result == nil {
		return nil
	}
	return json.Unmarshal(raw, result)
}

// tool calls a tool and fails when the tool does.
func (d *demo) tool(ctx context.Context, name string, arguments map[string]any) error {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	var result protocol.ToolCallResult
	err = d.call(ctx, protocol.MethodToolCall, protocol.ToolCallParams{
		SessionID: d.session, Name: name, Arguments: protocol.RawObject(raw),
	}, &result)
	if err == nil && result.IsError {
		err = fmt.Errorf("%s: %s", name, result.Content[0].Text)
	}
	return err
}

func (d *demo) play(ctx context.Context, profile, workspace string, o protocol.InitializationOptions) error {
	pid := os.Getpid()
	d.transcript.chapter("The editor starts the service")
	if err := d.call(ctx, protocol.MethodInitialize, protocol.InitializeParams{
		ProcessID: &pid, Options: o,
	}, nil); err != nil {
		return err
	}
	if err := d.client.Notify(ctx, protocol.MethodInitialized, protocol.Empty{}); err != nil {
		return err
	}

	d.transcript.chapter("A session on the profile " + profile)
	uri := (&url.URL{Scheme: "file", Path: workspace}).String()
	var opened protocol.SessionOpenResult
	if err := d.call(ctx, protocol.MethodSessionOpen, protocol.SessionOpenParams{Workspace: &uri, Profile: profile}, &opened); err != nil {
		return err
	}
	d.session = opened.Session.ID
	for _, scene := range []func(context.Context) error{d.files, d.commands, d.process, d.artifact} {
		if err := scene(ctx); err != nil {
			return err
		}
	}

	d.transcript.chapter("The session is deleted; nothing is left")
	return d.call(ctx, protocol.MethodSessionDelete, protocol.SessionDeleteParams{SessionID: d.session}, nil)
}

func (d *demo) files(ctx context.Context) error {
	d.transcript.chapter("Files")
	if err := d.call(ctx, protocol.MethodToolList, protocol.SessionParams{SessionID: d.session}, nil); err != nil {
		return err
	}
	for _, step := range []struct {
		tool      string
		arguments map[string]any
	}{
		{"write_file", map[string]any{"path": "notes/hello.txt", "content": "hello from the editor\n"}},
		{"edit_file", map[string]any{"path": "notes/hello.txt", "old_text": "the editor", "new_text": "an agent"}},
		{"read_file", map[string]any{"path": "notes/hello.txt"}},
		{"grep", map[string]any{"pattern": "agent$"}},
	} {
		if err := d.tool(ctx, step.tool, step.arguments); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) commands(ctx context.Context) error {
	d.transcript.chapter("Commands, confined")
	for _, step := range []struct {
		tool      string
		arguments map[string]any
	}{
		{"bash", map[string]any{"command": "uname -s && echo $((6 * 7))"}},
		{"bash", map[string]any{"command": "touch /etc/caisson-was-here"}},
		{"git", map[string]any{"subcommand": "init", "args": []string{"--quiet"}}},
		{"git", map[string]any{"subcommand": "status", "args": []string{"--short"}}},
	} {
		if err := d.tool(ctx, step.tool, step.arguments); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) process(ctx context.Context) error {
	d.transcript.chapter("A background process, and the news of its end")
	var started protocol.ProcessResult
	if err := d.call(ctx, protocol.MethodProcessStart, protocol.ProcessStartParams{
		SessionID: d.session, Command: "for i in 1 2 3; do echo tick $i; sleep 0.1; done",
	}, &started); err != nil {
		return err
	}
	if err := d.transcript.closed(ctx, started.Process.ID); err != nil {
		return err
	}
	return d.call(ctx, protocol.MethodProcessRead, protocol.ProcessReadParams{
		SessionID: d.session, ProcessID: started.Process.ID,
	}, nil)
}

func (d *demo) artifact(ctx context.Context) error {
	d.transcript.chapter("An artifact, which stays as it was")
	picture, err := drawing(8, 6)
	if err != nil {
		return err
	}
	write := func(content []byte) error {
		return d.tool(ctx, "write_file", map[string]any{
			"path": "drawing.png", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(content),
		})
	}
	if err := write(picture); err != nil {
		return err
	}
	if err := d.tool(ctx, "present_artifact", map[string]any{"path": "drawing.png"}); err != nil {
		return err
	}
	if err := write([]byte("overwritten")); err != nil {
		return err
	}
	id, err := d.transcript.artifact(ctx)
	if err != nil {
		return err
	}
	var read protocol.ArtifactReadResult
	if err := d.call(ctx, protocol.MethodArtifactRead, protocol.ArtifactReadParams{ID: id}, &read); err != nil {
		return err
	}
	if !bytes.Equal(read.Data, picture) {
		return fmt.Errorf("the artifact is not what was presented")
	}
	return nil
}

// drawing is a PNG of that size.
func drawing(width, height int) ([]byte, error) {
	m := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.SetGray(x, y, color.Gray{Y: uint8(255 * x / width)})
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, m)
	return b.Bytes(), err
}
