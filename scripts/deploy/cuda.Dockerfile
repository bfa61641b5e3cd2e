# featpipe for NVIDIA cards: command line, service and consumer. From the root of the checkout:
#
#   docker build -f scripts/deploy/cuda.Dockerfile -t featpipe:cuda .
#   docker run --rm --gpus all --read-only --tmpfs /tmp:exec --shm-size 4g -v $PWD:/data featpipe:cuda \
#     build-cache /data/documents --cache /data/cache.h5 --device cuda:0
#
# The wheel of torch brings CUDA's libraries: the machine needs a driver and the NVIDIA container toolkit.
# Parsed by tests/test_deploy_recipes.py; the image itself was not built where this was written.
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/featpipe
COPY scripts/constraints.txt scripts/constraints.txt
# torch first: it changes less often than the package, and its layer is kept.
RUN /opt/featpipe/bin/pip install --no-cache-dir -c scripts/constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY featpipe featpipe
COPY data/models data/models
RUN /opt/featpipe/bin/pip install --no-cache-dir -c scripts/constraints.txt \
      '.[amqp,docs,fast,otel,serve]'

FROM python:3.12-slim-bookworm
# libgomp: the OpenMP of torch and numba. gcc: Triton links the kernels of a card with it.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home featpipe
COPY --from=build /opt/featpipe /opt/featpipe
# Kept files go to /tmp, the only place that needs to be writable beside the volumes. The first two
# variables tell the NVIDIA runtime which cards the container sees.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PATH=/opt/featpipe/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    FEATPIPE_CACHE_DIR=/tmp/featpipe HF_HOME=/tmp/huggingface NUMBA_CACHE_DIR=/tmp/numba
USER 10001:10001
WORKDIR /data
EXPOSE 8080
# Of the service; a build or a consumer has no port and is started with --no-healthcheck.
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
ENTRYPOINT ["featpipe"]
CMD ["--help"]
