FROM python:3.12-slim

WORKDIR /opt/tcc
COPY pyproject.toml README.md LICENSE ./
COPY certs certs
COPY compiler compiler
COPY runtime runtime
COPY experiments experiments
COPY cli cli
RUN pip install --no-cache-dir ".[experiments]"

# Files are named from here: docker run -v "$PWD:/work" tcc check a.tcca
WORKDIR /work
ENTRYPOINT ["tcc"]
