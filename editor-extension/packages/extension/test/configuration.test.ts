import type { ProfileInfo } from "@caisson/protocol";
import { expect, it } from "vitest";
import { Configuration } from "../src/model/configuration.js";
import { eventually, testService } from "./things.js";

/** What profile/list says where the file has that problem. */
function listed(problem?: string) {
  const local: ProfileInfo = {
    name: "local",
    backend: "local",
    summary: "",
    valid: problem === undefined,
    ...(problem === undefined ? {} : { problem }),
  };
  return () => ({ default: "local", profiles: [local] });
}

it("knows of a problem when the service starts, and of each change at once", async () => {
  const told: [before: string, now: string][] = [];
  const { service, services } = testService(
    [{ "profile/list": listed("1:1: no JSON") }, { "profile/list": listed() }],
    { listen: (connection) => configuration.listen(connection) },
  );
  const configuration = new Configuration(service);
  configuration.onDidChange((before) => told.push([before, configuration.problem]));
  await service.ensure();
  await eventually(() => told.length === 1);
  services[0]?.notify("config/changed", { problem: "2:2: no object" });
  services[0]?.notify("config/changed", { problem: "2:2: no object" });
  services[0]?.notify("config/changed", {});
  services[0]?.notify("config/changed", { problem: "3:3: no backend" });
  await eventually(() => told.length === 4);
  await service.restart();
  await eventually(() => told.length === 5);
  expect(told).toEqual([
    ["", "1:1: no JSON"],
    ["1:1: no JSON", "2:2: no object"],
    ["2:2: no object", ""],
    ["", "3:3: no backend"],
    ["3:3: no backend", ""],
  ]);
  await service.stop();
});

it("takes no answer that is older than what was told", async () => {
  let answer = (): void => undefined;
  const { service, services } = testService(
    [
      {
        "profile/list": () =>
          new Promise((resolve) => {
            answer = () => resolve(listed("1:1: no JSON")());
          }),
        "session/list": () => ({ sessions: [] }),
      },
    ],
    { listen: (connection) => configuration.listen(connection) },
  );
  const configuration = new Configuration(service);
  const told: string[] = [];
  configuration.onDidChange(() => void told.push(configuration.problem));
  await service.ensure();
  await eventually(() => services[0]?.askedFor("profile/list").length === 1);
  services[0]?.notify("config/changed", { problem: "2:2: no object" });
  services[0]?.notify("config/changed", {});
  await eventually(() => told.length === 2);
  answer();
  await service.request("session/list", {}); // whose answer is behind that one
  expect(told).toEqual(["2:2: no object", ""]);
  await service.stop();
});
