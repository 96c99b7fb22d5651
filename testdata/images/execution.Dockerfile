# A ready image for docker profiles: what agents reach for most often. It is
# optional: any Linux image will do, since Caisson brings its own worker.
#
#   docker build -t caisson-execution -f testdata/images/execution.Dockerfile testdata/images
#
#   "isolated": { "backend": "docker", "image": "caisson-execution" }
#
# To derive from it, write a Dockerfile of your own and name its image in the
# profile:
#
#   FROM caisson-execution
#   USER root
#   RUN apt-get update && apt-get install -y --no-install-recommends golang \
#       && rm -rf /var/lib/apt/lists/*
#   USER agent
#
# What is in /workspace of the image is what a new environment starts with:
#
#   FROM caisson-execution
#   COPY --chown=agent:agent . /workspace
#
# Nothing is installed at run time: the network is off by default, and commands
# may write to the workspace and to their temporary directory only. A container
# that is meant to be changed says so in its profile ("writable_paths": ["/"],
# "network": "enabled", "user": "root"). Root has no capabilities there and apt
# cannot become a user of its own, so it is told here to stay root, and finds no
# directory of that user's; an image that is not derived from this one needs both.
ARG BASE=debian:bookworm-slim
FROM ${BASE}

RUN echo 'APT::Sandbox::User "root";' > /etc/apt/apt.conf.d/90-stay-root \
    && apt-get update \
    && apt-get install -y --no-install-recommends \
        bash ca-certificates git ripgrep python3 python3-venv nodejs npm procps \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/partial

# Not root: what an agent makes belongs to an ordinary user.
RUN useradd --create-home --uid 1000 --shell /bin/bash agent \
    && install -d -o agent -g agent /workspace
USER agent
WORKDIR /workspace
CMD ["bash"]
