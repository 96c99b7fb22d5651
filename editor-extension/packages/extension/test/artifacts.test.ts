import type { Artifact } from "@caisson/protocol";
import { describe, expect, it } from "vitest";
import { ResponseError } from "vscode-jsonrpc/node";
import { Artifacts } from "../src/model/artifacts.js";
import { eventually, testService } from "./things.js";

function artifact(name: string, content: string, createdAt = "2026-01-01T10:00:00Z"): Artifact {
  return {
    id: `sha256:${name}`,
    sessionId: "s1",
    name,
    mediaType: "text/plain",
    size: content.length,
    createdAt,
    source: { path: name, profile: "local" },
    uri: `caisson-artifact:/s1/sha256:${name}/${name}`,
  };
}

describe("Artifacts", () => {
  it("lists what there is and what comes, the newest first", async () => {
    let artifacts!: Artifacts;
    const older = artifact("older.txt", "1");
    const newer = artifact("newer.txt", "2", "2026-01-01T11:00:00Z");
    const { service, services } = testService(
      [{ "artifact/list": () => ({ artifacts: [older] }) }],
      { listen: (connection) => artifacts.listen(connection) },
    );
    artifacts = new Artifacts(service);
    await service.ensure();
    await eventually(() => artifacts.list().length === 1);
    const told: string[] = [];
    artifacts.onDidPublish((event) => void told.push(event.artifact.name));
    const preview = { kind: "text" as const, mediaType: "text/plain", text: "2", truncated: false };
    services[0]?.notify("artifact/published", { artifact: newer, preview });
    await eventually(() => told.length === 1);
    expect(artifacts.list().map((a) => a.name)).toEqual(["newer.txt", "older.txt"]);
    await service.stop();
  });

  it.each([
    ["text/markdown", "text", "markdown"],
    ["text/plain", "markdown", "text"], // as another publication of the same content is
    ["application/x-ipynb+json", "json", "text"],
    ["image/svg+xml", "text", "text"],
    ["image/png", "image", "image"],
    ["application/pdf", "binary", "hex"],
  ] as const)("looks at %s whose content is %s as %s", async (mediaType, kind, view) => {
    const preview = { kind, mediaType, truncated: true };
    const { service } = testService([
      { "artifact/list": () => ({ artifacts: [] }), "artifact/preview": () => preview },
    ]);
    const found = { ...artifact("any", "1"), mediaType };
    expect(await new Artifacts(service).viewOf(found)).toBe(view);
    await service.stop();
  });

  it("reads a content in pieces", async () => {
    const content = "0123456789";
    const { service } = testService([
      {
        "artifact/list": () => ({ artifacts: [] }),
        "artifact/read": ({ offset = 0 }) => ({
          data: Buffer.from(content.slice(offset, offset + 4)).toString("base64"),
          offset,
          eof: offset + 4 >= content.length,
        }),
      },
    ]);
    const artifacts = new Artifacts(service);
    const read = await artifacts.read(artifact("digits", content));
    expect(Buffer.from(read).toString()).toBe(content);
    await service.stop();
  });

  it("follows what other windows publish and delete, and is quiet about the rest", async () => {
    let artifacts!: Artifacts;
    let there = [artifact("a.txt", "1")];
    let gate = Promise.resolve();
    let heard = 0;
    const { service, services } = testService(
      [
        {
          "artifact/list": async () => {
            await gate;
            return { artifacts: there };
          },
        },
      ],
      {
        listen: (connection) => {
          artifacts.listen(connection);
          connection.onNotification("config/changed", () => void heard++);
        },
      },
    );
    artifacts = new Artifacts(service);
    let changes = 0;
    artifacts.onDidChange(() => void changes++);
    await service.ensure();
    await eventually(() => changes === 1);
    for (const now of [[artifact("a.txt", "1"), artifact("b.txt", "2")], []]) {
      const asked = services[0]?.askedFor("artifact/list").length ?? 0;
      let open!: () => void;
      gate = new Promise((resolve) => {
        open = resolve;
      });
      const before = heard;
      for (let i = 0; i < 20; i++) {
        services[0]?.notify("artifact/changed", {});
      }
      services[0]?.notify("config/changed", {});
      await eventually(() => heard > before);
      there = now;
      open();
      await eventually(() => artifacts.list().length === now.length);
      // Once more for all that came while the list was on its way.
      await eventually(() => services[0]?.askedFor("artifact/list").length === asked + 2);
    }
    await artifacts.load();
    expect(changes).toBe(3);
    expect(services[0]?.askedFor("artifact/list")).toHaveLength(6);
    await service.stop();
  });

  it("has one no longer that another window deleted", async () => {
    const gone = artifact("report.txt", "1");
    let there = [gone];
    const { service } = testService([
      {
        "artifact/list": () => ({ artifacts: there }),
        "artifact/preview": () => {
          throw new ResponseError(-32000, "sha256:00: no such artifact", {
            kind: "artifactNotFound",
            retryable: false,
            hint: "artifact/list names the artifacts that there are",
          });
        },
      },
    ]);
    const artifacts = new Artifacts(service);
    await service.ensure();
    await eventually(() => artifacts.list().length === 1);
    there = [];
    await expect(artifacts.viewOf(gone)).rejects.toMatchObject({
      message: "The artifact report.txt was deleted in the meantime.",
      data: { kind: "artifactNotFound" },
    });
    await eventually(() => artifacts.list().length === 0);
    await service.stop();
  });
});
