# A seat on a JupyterHub; docs/workshop.md says how it is used. The image below is that of docs/containers.md.
FROM stuck-ranks

# The version must be that of the hub, which the chart names as its appVersion.
RUN .venv/bin/python -m pip install "jupyterhub==5.5.*"
