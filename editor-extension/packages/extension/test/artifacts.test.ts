import type { Artifact } from "@caisson/protocol";
import { afterEach, describe, expect, it, vi } from "vitest";
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
  afterEach(() => void vi.useRealTimers());

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
      services[0]?.notify("artifact/changed", {});
      await eventually(() => services[0]?.askedFor("artifact/list").length === asked + 1);
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

  it("keeps what is published, and has no more what is deleted, while the list is on its way", async () => {
    let artifacts!: Artifacts;
    const [old, gone, newest] = ["old.txt", "gone.txt", "new.txt"].map((n) => artifact(n, n));
    if (old === undefined || gone === undefined || newest === undefined) {
      throw new Error("there are three");
    }
    let answer = (): void => undefined;
    let gate = Promise.resolve();
    const { service, services } = testService(
      [
        {
          "artifact/list": async () => {
            const then = { artifacts: [old, gone] };
            await gate;
            return then;
          },
          "artifact/delete": () => ({}),
        },
      ],
      { listen: (connection) => artifacts.listen(connection) },
    );
    artifacts = new Artifacts(service);
    await service.ensure();
    await eventually(() => artifacts.list().length === 2);
    gate = new Promise((resolve) => {
      answer = resolve;
    });
    const loaded = artifacts.load();
    await eventually(() => services[0]?.askedFor("artifact/list").length === 2);
    const preview = { kind: "text" as const, mediaType: "text/plain", text: "n", truncated: false };
    services[0]?.notify("artifact/published", { artifact: newest, preview });
    await artifacts.delete(gone);
    await eventually(() => artifacts.get(newest.uri) !== undefined);
    answer();
    await loaded;
    expect(artifacts.list().map((a) => a.name)).toEqual(["old.txt", "new.txt"]);
    await service.stop();
  });

  it("asks at once, then with a pause as long as the list takes, and once for all between", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    let artifacts!: Artifacts;
    let heard = 0;
    let takes = 0;
    const { service, services } = testService(
      [
        {
          "artifact/list": () => {
            vi.setSystemTime(Date.now() + takes);
            return { artifacts: [] };
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
    await service.ensure();
    const asked = () => services[0]?.askedFor("artifact/list").length;
    await eventually(() => asked() === 1);
    const tell = async () => {
      const before = heard;
      services[0]?.notify("artifact/changed", {});
      services[0]?.notify("config/changed", {});
      await eventually(() => heard > before && vi.getTimerCount() > 0);
    };
    takes = 300;
    const timers = vi.getTimerCount();
    services[0]?.notify("artifact/changed", {});
    await eventually(() => asked() === 2 && vi.getTimerCount() > timers);
    for (let i = 0; i < 20; i++) {
      await tell();
      vi.advanceTimersByTime(149);
    }
    expect(asked()).toBe(2);
    vi.advanceTimersByTime(20);
    await eventually(() => asked() === 3 && vi.getTimerCount() > timers);
    vi.advanceTimersByTime(3_000);
    await eventually(() => vi.getTimerCount() === timers);
    // Nothing has changed any more.
    expect(asked()).toBe(3);
    vi.useRealTimers();
    await service.stop();
  });

  it("asks a service no more that is about to end, and starts none", async () => {
    let artifacts!: Artifacts;
    let heard = 0;
    const { service, services } = testService(
      [
        {
          "artifact/list": () => ({ artifacts: [] }),
          shutdown: () => {
            services[0]?.notify("artifact/changed", {});
            services[0]?.notify("config/changed", {});
            return null;
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
    await service.ensure();
    await service.stop();
    expect(heard).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    await service.stop();
    expect(services).toHaveLength(1);
    expect(services[0]?.askedFor("artifact/list")).toHaveLength(1);
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
