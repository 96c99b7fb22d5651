#!/usr/bin/env python3
"""Starts adapters of broken.py by a fork, for who starts thousands of them: to start
Python itself takes fifty times longer.

Its fd 0 is a socket of packets. Each packet asks for one adapter: an object with its
"breach" (a name, or "") and more of an "environment", and four descriptors: its stdin, stdout
and stderr, and a socket of packets of its own. There the nursery says its wait status
when it has exited and its process group is gone; a packet that comes from there, or the
end of the other side, kills it. The end of fd 0 ends the nursery, and all with it.
"""

import gc
import json
import os
import selectors
import signal
import socket
import sys

import broken  # and with it where the others are
import adapter

PACKET_BYTES = 64 << 10


class Child:
    def __init__(self, pid, teller):
        self.pid, self.teller = pid, teller
        self.exit = os.pidfd_open(pid)
        self.heard = self.settled = False

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def settle(self):
        os.waitid(os.P_PIDFD, self.exit, os.WEXITED | os.WNOWAIT)
        self.kill()  # what is left of its group, whose number is its own until it is reaped
        _, status = os.waitpid(self.pid, 0)
        try:
            self.teller.send(str(status).encode())
        except OSError:
            pass  # nobody asks any more
        self.teller.close()
        os.close(self.exit)


class Nursery:
    def __init__(self):
        self.asked = socket.socket(fileno=0)
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(self.asked, selectors.EVENT_READ, self.ask)
        self.children = set()
        self.over = False

    def run(self):
        while not self.over:
            for key, _ in self.waiting.select():
                key.data()
        for child in self.children:
            child.kill()

    def ask(self):
        packet, descriptors, _, _ = socket.recv_fds(self.asked, PACKET_BYTES, 4)
        if not packet:
            self.over = True
            return
        asked, streams = json.loads(packet), descriptors[:3]
        pid = os.fork()
        if pid == 0:
            become(streams, asked)
        os.setpgid(pid, pid)
        for descriptor in streams:
            os.close(descriptor)
        child = Child(pid, socket.socket(fileno=descriptors[3]))
        self.children.add(child)
        self.waiting.register(child.teller, selectors.EVENT_READ, lambda: self.told(child))
        self.waiting.register(child.exit, selectors.EVENT_READ, lambda: self.exited(child))

    def told(self, child):
        if child.settled:
            return  # at the same time
        child.heard = True
        self.waiting.unregister(child.teller)
        child.kill()

    def exited(self, child):
        self.waiting.unregister(child.exit)
        if not child.heard:
            self.waiting.unregister(child.teller)
        self.children.remove(child)
        child.settled = True
        child.settle()


def become(streams, asked):
    """Makes this process the adapter. It does not return."""
    os.setpgid(0, 0)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 20)
    os.environ.update(asked["environment"])
    try:
        adapter.main(broken.BREACHES[asked["breach"]] if asked["breach"] else broken.Whole)
    finally:
        os._exit(1)


if __name__ == "__main__":
    gc.freeze()
    Nursery().run()
    sys.stdout.flush()
