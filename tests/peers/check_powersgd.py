"""PowerSGD on two ranks ends in the weights that PyTorch's powerSGD_hook ends in.

Both begin with whole gradients, as the hook insists, and then with the same random factors: Cohort's,
which are made here again from their definition. All 64 samples are one batch. How they lie on the
two ranks plays no part, for the factors are those of the sum over ranks.
"""
import math
import multiprocessing
import os
import sys

from common import SMOOTH, F, Smooth, nn, skip, torch, train, weights, workplace, write_idx

try:
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
except ImportError as missing:
    skip(f"this PyTorch has no powerSGD_hook: {missing}")
if not dist.is_available() or not dist.is_gloo_available():
    skip("this PyTorch has no Gloo")

STEPS, START, SAMPLES = 20, 2, 64
# Where the tensor of so many columns comes in the order of backward.
NUMBER = {20: 0, 96: 2, 25: 4}  # fc2, fc1, conv1; their biases are 1, 3 and 5
STREAM = 8  # of compressors


def philox(counter):
    """Philox4x32-10 with the key 0."""
    c, key = list(counter), [0, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def normal(item, step, n):
    values = []
    for at in range(n):
        pair = at & ~1
        word = philox((pair // 4, item, step, STREAM))
        radius = math.sqrt(-2 * math.log((word[pair % 4] + 1) / 2**32))
        angle = 2 * math.pi * word[pair % 4 + 1] / 2**32
        values.append(radius * (math.sin(angle) if at & 1 else math.cos(angle)))
    return torch.tensor(values, dtype=torch.float32)


def first_factor(_, cols, rank, warm, steps):
    """What Cohort draws for Q (cols, rank): each vector has numbers of its own."""
    step = 0 if warm else steps
    return normal(NUMBER[cols], step, cols * rank).reshape(rank, cols).t().contiguous()


def run_torch(index, folder, image, label, start, rank, warm, queue):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=index,
                            world_size=2)
    model = Smooth()
    model.load_state_dict(start)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank,
                                        start_powerSGD_iter=START, warm_start=warm)
    randn, step = torch.randn, [0]
    torch.randn = lambda *shape, **_: first_factor(*shape, warm, step[0])[None]
    ddp = nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for step[0] in range(STEPS):
        optimizer.zero_grad()
        F.nll_loss(ddp(image[index::2]), label[index::2]).backward()
        optimizer.step()
    torch.randn = randn
    if index == 0:
        queue.put({name: value.detach().numpy() for name, value in model.state_dict().items()})
    dist.barrier()


def in_torch(folder, name, *arguments):
    place = os.path.join(folder, name)
    os.mkdir(place)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    ranks = [context.Process(target=run_torch, args=(i, place, *arguments, queue), daemon=True)
             for i in range(2)]
    for process in ranks:
        process.start()
    while queue.empty():
        if any(process.exitcode for process in ranks):
            sys.exit("a rank of PyTorch failed")
        ranks[0].join(0.1)
    found = {name: torch.from_numpy(value) for name, value in queue.get().items()}
    for process in ranks:  # what they have to say is said; taking a process group down may take long
        process.kill()
        process.join()
    return found


def distance(a, b):
    return ((a - b).norm() / b.norm()).item()


with workplace() as place:
    torch.manual_seed(5)
    image = torch.randint(0, 256, (SAMPLES, 28, 28), dtype=torch.uint8)
    label = torch.randint(0, 10, (SAMPLES,), dtype=torch.uint8)
    for split in ("train", "t10k"):
        write_idx(os.path.join(place, f"{split}-images-idx3-ubyte"), image)
        write_idx(os.path.join(place, f"{split}-labels-idx1-ubyte"), label)
    image, label = image[:, None] / 255.0, label.long()

    def in_cohort(name, optimizer, steps, strategy):
        return weights(train(sys.argv[1], place, name, {
            **SMOOTH, "data": {"name": "mnist", "path": place}, "batch": SAMPLES,
            "epochs": steps, "optimizer": {"name": "sgd", **optimizer}, "evaluate": False,
            "strategy": strategy}, ranks=2))

    # A step this small leaves the initial weights.
    start = in_cohort("start", {"lr": 1e-30}, 1, "sync")
    whole = in_cohort("whole", {"lr": 0.05, "momentum": 0.5}, STEPS, "sync")
    for rank, warm in ((2, True), (1, False)):
        name = f"rank{rank}-{'warm' if warm else 'cold'}"
        compress = {"name": "powersgd", "rank": rank, "start": START, "warm_start": warm}
        found = in_cohort(name, {"lr": 0.05, "momentum": 0.5}, STEPS,
                          {"name": "sync", "compress": compress})
        expected = in_torch(place, name + "-torch", image, label, start, rank, warm)
        worst = max(distance(found[key], expected[key]) for key in expected)
        other = max(distance(found[key], whole[key]) for key in expected)
        print(f"{name}: weights differ by {worst:.1e} of their norm, from whole gradients' by "
              f"{other:.1e}")
        assert worst < 1e-4, name
        assert other > 1e-3, f"{name}: nothing was left out"
