#!/usr/bin/env python3
"""The adapter that breaks the clause CLAUSE, or none where that is empty, and answers
nothing but initialize and the tools TOOL: few.py CLAUSE [TOOL]...
"""

import sys

from broken import BREACHES
from whole import Whole

import adapter
from files import Refusal


def few(kind, tools):
    class Few(kind):
        def handle(self, request):
            if request.method == "execute" and request.data["call"]["name"] in tools:
                return super().handle(request)
            raise Refusal("there is no such thing", "unsupported")
    return Few


if __name__ == "__main__":
    adapter.main(few(BREACHES.get(sys.argv[1], Whole), sys.argv[2:]))
