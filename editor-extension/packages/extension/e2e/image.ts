import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A small image with a shell, made of this machine's static busybox, without a registry. */
export const image = "caisson-e2e:1";

/** Makes the image, unless it is there. */
export async function makeImage(): Promise<void> {
  const { stdout } = await run("docker", ["images", "-q", image]);
  if (stdout.trim() !== "") {
    return;
  }
  const root = await mkdtemp(join(tmpdir(), "caisson-e2e-image-"));
  try {
    await mkdir(join(root, "bin"));
    await mkdir(join(root, "tmp"), { mode: 0o1777 });
    await mkdir(join(root, "etc"));
    await writeFile(join(root, "etc", "passwd"), "root:x:0:0:root:/:/bin/sh\n");
    await copyFile(process.env["BUSYBOX"] ?? "/bin/busybox", join(root, "bin", "busybox"));
    for (const name of ["sh", "cat", "echo", "sleep", "ls", "head", "printf", "true"]) {
      await symlink("busybox", join(root, "bin", name));
    }
    const tar = join(root, "image.tar");
    await run("tar", ["-C", root, "--exclude", "image.tar", "-cf", tar, "bin", "tmp", "etc"]);
    await run("docker", ["import", "-c", "ENV PATH=/bin", tar, image]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
