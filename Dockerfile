# ablate in a container: `docker build -t ablate .`, then
# `docker run --rm -v "$PWD":/work ablate run` in the folder of a pipeline.

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc g++ make && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --locked --profile dist --bin ablate

# With Python, since stages of the kind `command` and models of your own often are in it.
FROM python:3.12-slim-bookworm
COPY --from=build /source/target/dist/ablate /usr/local/bin/ablate
COPY --from=build /source/python/ablate /usr/local/lib/python3.12/site-packages/ablate
WORKDIR /work
ENTRYPOINT ["ablate"]
CMD ["--help"]
