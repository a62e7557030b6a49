# The emulator as a service:  docker run -p 8799:8799 workersai-emulator
#
# Each option of `serve` is an environment variable, such as -e WORKERSAI_EMULATOR_SCRIPT=realistic.
# It listens beyond loopback, so that the control plane stays closed until WORKERSAI_EMULATOR_CONTROL_TOKEN is set;
# under another name than localhost it also asks for that name in WORKERSAI_EMULATOR_ALLOW_HOST.

FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/emulator && /opt/emulator/bin/pip install --no-cache-dir .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home emulator
COPY --from=build /opt/emulator /opt/emulator
ENV PATH=/opt/emulator/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    WORKERSAI_EMULATOR_HOST=0.0.0.0 \
    WORKERSAI_EMULATOR_PORT=8799
USER 10001
EXPOSE 8799
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s CMD ["python", "-m", "workersai_emulator.health"]
ENTRYPOINT ["workersai-emulator"]
CMD ["serve"]
