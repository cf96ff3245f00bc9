"""The variables by which launchers tell a rank its place, and torch and NCCL what to use."""

INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
"""The variables that name a network interface."""

TEST = "PYTEST_CURRENT_TEST"
"""The variable in which pytest has the test that it runs, and its stage: `test_a.py::test_b (call)`."""

ENVIRONMENT = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    TEST,
    *INTERFACES,
)
"""The launch variables that a record carries."""
