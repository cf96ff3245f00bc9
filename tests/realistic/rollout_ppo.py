"""Tiny policy-gradient learner; every worker plays its own environment and all update together."""
import argparse
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    obs: int = 4
    actions: int = 2
    horizon: int = 128
    updates: int = 12
    lr: float = 1e-2
    gamma: float = 0.95
    kl_limit: float = 0.02


class LineWorld:
    """Walk right to the goal; the wind is different in each world."""

    def __init__(self, seed, wind):
        self.gen = torch.Generator().manual_seed(seed)
        self.wind = wind
        self.reset()

    def reset(self):
        self.pos, self.t = 0.0, 0
        return self.observe()

    def observe(self):
        return torch.tensor([self.pos, self.t / 20, self.wind, 1.0])

    def step(self, action):
        self.pos += (1.0 if action == 1 else -1.0) * 0.5 - self.wind * torch.rand(1, generator=self.gen).item()
        self.t += 1
        done = self.pos > 4 or self.t >= 20
        return self.observe(), 1.0 if self.pos > 4 else -0.01, done


class Policy(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.obs, 24), nn.Tanh(), nn.Linear(24, cfg.actions))

    def forward(self, obs):
        return torch.log_softmax(self.net(obs), -1)


@dataclass
class Rollout:
    obs: list = field(default_factory=list)
    act: list = field(default_factory=list)
    ret: list = field(default_factory=list)
    wins: int = 0


@torch.no_grad()
def collect(policy, env, cfg, gen):
    roll, rewards = Rollout(), []
    obs = env.reset()
    while len(roll.obs) < cfg.horizon:
        p = policy(obs).exp()
        a = int(torch.multinomial(p, 1, generator=gen))
        roll.obs.append(obs)
        roll.act.append(a)
        obs, r, done = env.step(a)
        rewards.append(r)
        if done or len(roll.obs) == cfg.horizon:
            roll.wins += r > 0
            g = 0.0
            returns = []
            for r in reversed(rewards):
                g = r + cfg.gamma * g
                returns.append(g)
            roll.ret += reversed(returns)
            rewards = []
            obs = env.reset()
    return roll


def update(model, optimizer, roll):
    obs, act = torch.stack(roll.obs), torch.tensor(roll.act)
    ret = torch.tensor(roll.ret)
    adv = (ret - ret.mean()) / (ret.std() + 1e-6)
    logp = model(obs)
    loss = -(logp[torch.arange(len(act)), act] * adv).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        new = model.module(obs)
        kl = (logp.exp() * (logp - new)).sum(-1).mean().item()
    return loss.item(), kl


def all_agree(flag):
    votes = [None] * dist.get_world_size()
    dist.all_gather_object(votes, bool(flag))
    return all(votes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=Config.updates)
    args = parser.parse_args()
    cfg = Config(updates=args.updates)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Policy(cfg))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    env = LineWorld(seed=rank, wind=0.1 + 0.5 * rank)
    gen = torch.Generator().manual_seed(rank)

    for i in range(cfg.updates):
        roll = collect(model.module, env, cfg, gen)
        loss, kl = update(model, optimizer, roll)
        solved = roll.wins >= 4
        if rank == 0:
            print(f"update {i}: loss {loss:.4f} kl {kl:.5f} wins {roll.wins}", flush=True)
        if solved and all_agree(kl < cfg.kl_limit):
            break

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
