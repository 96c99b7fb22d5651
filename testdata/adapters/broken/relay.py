#!/usr/bin/env python3
"""The adapter that breaks nothing, until line N of its input, with which it dies or
floods: relay.py N dies|floods.
"""

import os
import subprocess
import sys


def main(last, how):
    whole = subprocess.Popen([sys.executable, "-B", os.path.join(os.path.dirname(__file__), "broken.py")],
                             stdin=subprocess.PIPE)
    for line in sys.stdin.buffer:
        last -= 1
        if last == 0:
            break
        whole.stdin.write(line)
        whole.stdin.flush()
    while how == "floods":
        os.write(1, b"this is no frame\n")
    os.write(2, b"this is the end\n")
    whole.kill()
    os._exit(9)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
