import { access, constants, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { ServiceError } from "./errors.js";

/** Where the program may be. */
export interface Places {
  /** The user's setting caisson.path, of which a file of settings may make anything. */
  configured: unknown;
  /** The extension's own folder; platform packages have the program in its bin. */
  extension: string;
  /** The variables of the extension host. */
  environment: NodeJS.ProcessEnv;
  platform: NodeJS.Platform;
}

/** The service cannot be started until a setting of the extension says how. */
export class SettingNeeded extends ServiceError {}

/** The program that was found, and by what. */
export interface Program {
  path: string;
  from: "setting" | "extension" | "PATH";
}

/**
 * Finds the program: what the setting names, which must be there, else the one that
 * came with the extension, else the first on the PATH.
 */
export async function locate(places: Places): Promise<Program> {
  if (places.configured !== "" && places.configured !== null) {
    return { path: await configured(places.configured), from: "setting" };
  }
  const name = places.platform === "win32" ? "caisson.exe" : "caisson";
  const own = join(places.extension, "bin", name);
  if (await executable(own)) {
    return { path: own, from: "extension" };
  }
  for (const folder of (places.environment["PATH"] ?? "").split(delimiter)) {
    // An empty or relative entry means the current folder, which may be anybody's.
    if (isAbsolute(folder) && (await executable(join(folder, name)))) {
      return { path: join(folder, name), from: "PATH" };
    }
  }
  throw new SettingNeeded(
    "The program caisson was not found beside the extension or on the PATH.",
    {
      hint: "Install it, or name it in the setting caisson.path.",
    },
  );
}

/** The options that every command of the program takes, each with a value. */
const common = new Set(["--config", "--data-dir", "--log-level", "--state-dir"]);

/** What of the service's arguments another command gets, to look at the same as the service. */
export function commonArguments(configured: unknown): string[] {
  const list = Array.isArray(configured) ? configured.map(String) : [];
  return list.flatMap((argument, i) => {
    const [option = ""] = argument.split("=", 1);
    if (!common.has(option)) {
      return [];
    }
    return option === argument ? list.slice(i, i + 2) : [argument];
  });
}

/** What the service gets behind "serve", of the user's setting caisson.serviceArguments. */
export function serviceArguments(configured: unknown): string[] {
  const list = configured ?? [];
  if (!Array.isArray(list) || !list.every((argument) => typeof argument === "string")) {
    throw new SettingNeeded("The setting caisson.serviceArguments must be a list of texts.", {
      hint: "Correct the setting caisson.serviceArguments.",
    });
  }
  return list;
}

async function configured(path: unknown): Promise<string> {
  if (typeof path !== "string" || !isAbsolute(path)) {
    throw new SettingNeeded(`The setting caisson.path must be an absolute path, not ${path}.`, {
      hint: "Correct the setting caisson.path.",
    });
  }
  if (!(await executable(path))) {
    throw new SettingNeeded(`${path}, which the setting caisson.path names, is not a program.`, {
      hint: "Correct the setting caisson.path.",
    });
  }
  return path;
}

async function executable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
