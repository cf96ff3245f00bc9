"""A healthy job: rank 0 waits in an event loop for a program and a timer."""

import asyncio

import torch.distributed as dist


async def gather() -> None:
    program = await asyncio.create_subprocess_exec("sleep", "5")
    await asyncio.gather(program.wait(), asyncio.sleep(3))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    asyncio.run(gather())
dist.barrier()
dist.destroy_process_group()
