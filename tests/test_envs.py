import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lapbook  # noqa: F401  registers the environments
from lapbook.envs.grid import observe
from lapbook.envs.point import has_physics, positions_of
from lapbook.envs.point import observe as observe_floor
from lapbook.floors import is_free
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout

GRIDS = ["lapbook/GridRoom-v0", "lapbook/GridMaze-v0"]
PHYSICS = has_physics()  # there are wheels for Python 3.11 only
POINTS = ["lapbook/PointRoom-v0", "lapbook/PointMaze-v0"] if PHYSICS else []
needs_physics = pytest.mark.skipif(not PHYSICS, reason="PyBullet is not installed")
CELL = Layout("####\n#..#\n####", "two cells")


def small(id_, **kwargs):
    return gym.make(id_, layout=CELL, **kwargs)


@pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")
@pytest.mark.filterwarnings("ignore:The system font")  # MiniGrid's window asks for a font that may be missing
@pytest.mark.parametrize("id_", [*GRIDS, *POINTS, "lapbook/Grid-v0", "lapbook/Point-v0"])
def test_checker_passes(id_, monkeypatch):
    if "Point" in id_ and not PHYSICS:
        pytest.skip("PyBullet is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # the checker opens a window, too
    layout = {"layout": CELL} if id_ in ("lapbook/Grid-v0", "lapbook/Point-v0") else {}
    env = gym.make(id_, render_mode="rgb_array", **layout)
    check_env(env.unwrapped)
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.std() > 10
    env.close()


@pytest.mark.parametrize("obs", ["xy", "image"])
def test_checker_passes_on_observations(obs):
    check_env(gym.make("lapbook/GridMaze-v0", obs=obs).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("id_", [*GRIDS, *POINTS])
def test_seeds_give_identical_trajectories(id_):
    walks = []
    for seed in (1, 1, 2):
        env = gym.make(id_)
        env.action_space.seed(seed)
        walk = [env.reset(seed=seed)[0]] + [env.step(env.action_space.sample())[0] for _ in range(40)]
        walks.append(np.array(walk))
        env.close()
    assert (walks[0] == walks[1]).all()
    assert (walks[0] != walks[2]).any()


@pytest.mark.parametrize("id_", [*GRIDS, *POINTS])
def test_batch_makes_the_same_transitions_as_step(id_):
    compare_batch_and_step(id_)


def test_batch_sees_the_same_images_as_step():
    compare_batch_and_step("lapbook/GridMaze-v0", obs="image")


def compare_batch_and_step(id_, **arguments):
    number, length = 30, 60
    batch = gym.make_vec(id_, num_envs=number, **arguments)
    batch.action_space.seed(0)
    seen, info = batch.reset(seed=0)
    starts = info["state"].copy()
    walk, actions = [seen], []
    for _ in range(length):
        actions.append(batch.action_space.sample())
        walk.append(batch.step(actions[-1])[0])
    walk = np.array(walk)
    env = gym.make(id_, **arguments)
    for k in range(number):
        alone = [env.reset(options={"state": starts[k]})[0]]
        alone += [env.step(action[k])[0] for action in actions]
        assert (np.array(alone) == walk[:, k]).all()
    assert len(np.unique(walk.reshape(number * (length + 1), -1), axis=0)) > 100
    env.close()
    batch.close()


@pytest.mark.parametrize("id_", [GRIDS[0], *POINTS[:1]])
def test_batches_have_seeds_and_spaces_of_their_own(id_):
    first, second = gym.make_vec(id_, num_envs=5), gym.make_vec(id_, num_envs=5)
    assert (first.reset(seed=3)[0] == second.reset(seed=3)[0]).all()
    assert (first.reset(seed=4)[0] != second.reset(seed=3)[0]).any()
    first.action_space.seed(0)
    expected = [first.action_space.sample() for _ in range(3)]
    first.action_space.seed(0)
    for action in expected:
        second.action_space.seed(1)
        assert (first.action_space.sample() == action).all()
    _, info = first.reset(seed=5)
    info["state"][:] = info["state"][0]  # the caller's own copy
    assert (first.step(expected[0])[0] == second_step(second, expected[0])).all()
    first.close()
    second.close()


def second_step(envs, actions):
    envs.reset(seed=5)
    return envs.step(actions)[0]


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
@pytest.mark.parametrize("id_", [GRIDS[0], *POINTS[1:]])
def test_make_vec_in_every_mode(id_, mode):
    envs = gym.make_vec(id_, num_envs=2, vectorization_mode=mode)
    envs.reset(seed=0)
    seen, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
    assert seen in envs.observation_space
    assert not np.any([reward, terminated, truncated])
    assert len(info["state"]) == 2
    envs.close()


def test_grid_moves_by_hand():
    env = small("lapbook/Grid-v0")
    _, info = env.reset(options={"state": 0})
    assert info["state"] == 0
    states = [env.step(action)[4]["state"] for action in (0, 2, 1, 1, 3, 0)]  # left, up, right, right, down, left
    assert states == [0, 0, 1, 1, 1, 0]


def test_images_show_where_the_agent_is():
    images = observe(GRID_ROOM, np.arange(GRID_ROOM.n), "image")
    assert images.shape == (271, 21, 21, 3)
    red = (images == [1, 0, 0]).all(axis=-1)
    assert (red.sum(axis=(1, 2)) == 1).all()
    assert (np.argwhere(red)[:, 1:] == GRID_ROOM.cells).all()
    assert images.min() == 0
    assert images.max() == 1


def test_minigrid_draws_the_map():
    env = gym.make("lapbook/GridMaze-v0", render_mode="rgb_array")
    env.reset(options={"state": 5})
    tiles = env.render().reshape(19, 32, 19, 32, 3).mean(axis=(1, 3))
    walls = np.abs(tiles - 100).max(axis=-1) < 1
    assert (walls == ~GRID_MAZE.free).all()
    assert (tiles[..., 0] - tiles[..., 1]).argmax() == np.ravel_multi_index(GRID_MAZE.cells[5], (19, 19))


def test_random_starts_are_uniform():
    batch = gym.make_vec("lapbook/GridMaze-v0", num_envs=161 * 200)
    counts = np.bincount(batch.reset(seed=0)[1]["state"], minlength=161)
    assert ((counts - 200) ** 2 / 200).sum() < 161 + 4 * np.sqrt(2 * 161)  # chi-squared, four standard deviations


@pytest.mark.parametrize("id_", POINTS)
def test_balls_never_leave_the_free_space(id_):
    batch = gym.make_vec(id_, num_envs=500)
    layout = batch.unwrapped.layout
    batch.action_space.seed(0)
    _, info = batch.reset(seed=0)
    before = info["state"]
    for _ in range(200):  # 100,000 steps
        state = batch.step(batch.action_space.sample())[4]["state"]
        assert is_free(layout, state).all()
        assert np.linalg.norm(state - before, axis=1).max() < 0.5 + 1e-6
        before = state
    batch.close()


@needs_physics
def test_ball_moves_by_hand():
    env = small("lapbook/Point-v0")  # a floor of 3×2: centres in [0.5, 2.5]×[0.5, 1.5]
    env.reset(options={"state": (1.0, 1.0)})
    state = env.step(np.array([0.0]))[4]["state"]
    assert state == pytest.approx([1.5, 1.0], abs=1e-9)
    state = env.step(np.array([np.pi / 4]))[4]["state"]  # y grows downwards
    assert state == pytest.approx([1.5 + 8**-0.5, 1 + 8**-0.5], abs=1e-9)
    for _ in range(4):
        state = env.step(np.array([np.pi / 4]))[4]["state"]
    assert state == pytest.approx([2.5, 1.5], abs=2e-3)  # in the corner
    slid = env.step(np.array([5 * np.pi / 6]))[4]["state"]  # along the lower wall
    assert slid == pytest.approx([2.5 - 0.5 * np.cos(np.pi / 6), 1.5], abs=5e-3)
    env.close()


@needs_physics
def test_close_frees_the_physics_client_and_instances_do_not_meet():
    import pybullet

    def clients():
        return sum(pybullet.getConnectionInfo(i)["isConnected"] for i in range(64))

    before = clients()
    first, second = small("lapbook/Point-v0"), small("lapbook/Point-v0")
    assert clients() == before + 2
    first.reset(options={"state": (1.0, 1.0)})
    second.reset(options={"state": (1.0, 1.0)})
    for _ in range(3):
        first.step(np.array([0.0]))
    assert second.step(np.array([0.0]))[4]["state"] == pytest.approx([1.5, 1.0], abs=1e-9)
    first.close()
    first.close()
    second.close()
    assert clients() == before


@pytest.mark.parametrize(
    ("id_", "action", "message"),
    [
        ("lapbook/Grid-v0", 4, r"action must be 0 \(left\), 1 \(right\), 2 \(up\), 3 \(down\): got 4"),
        ("lapbook/Grid-v0", np.nan, "got nan"),
        ("lapbook/Grid-v0", 1.5, "got 1.5"),
        ("lapbook/Point-v0", np.array([7.0]), r"angle in \[0, 2π\]: got 7.0"),
        ("lapbook/Point-v0", np.array([np.nan]), "got nan"),
        ("lapbook/Point-v0", np.array([1.0, 2.0]), r"shape \(1,\), got \(2,\)"),
    ],
)
def test_bad_actions_are_refused(id_, action, message):
    if "Point" in id_ and not PHYSICS:
        pytest.skip("PyBullet is not installed")
    env = small(id_, disable_env_checker=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(action)
    env.close()


def test_bad_batch_actions_are_refused():
    batch = gym.make_vec("lapbook/Grid-v0", num_envs=2, layout=CELL)
    batch.reset(seed=0)
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)"):
        batch.step(np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="got 9"):
        batch.step(np.array([0, 9]))


@pytest.mark.parametrize(
    ("id_", "state", "message"),
    [
        ("lapbook/Grid-v0", 2, "state must be a state number 0 … 1: got 2"),
        ("lapbook/Point-v0", (0.2, 1.0), r"state \(0.2, 1\) is not free: 0.2 from the nearest wall of two cells"),
        ("lapbook/Point-v0", (np.nan, 1.0), "is not free"),
        ("lapbook/Point-v0", (1.0,), r"positions \(x, y\) of shape \(1, 2\), got shape \(1,\)"),
        ("lapbook/Point-v0", ((1.0,), (1.0,)), r"got shape \(2, 1\)"),
    ],
)
def test_bad_starts_are_refused(id_, state, message):
    if "Point" in id_ and not PHYSICS:
        pytest.skip("PyBullet is not installed")
    env = small(id_)
    with pytest.raises(ValueError, match=message):
        env.reset(options={"state": state})
    env.close()


def test_other_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"obs must be one of \('xy', 'image'\), got 'pixels'"):
        gym.make("lapbook/GridRoom-v0", obs="pixels")
    with pytest.raises(ValueError, match="at least 3×3"):
        gym.make("lapbook/Grid-v0", layout=Layout(".."))
    with pytest.raises(ValueError, match=r"layout must be a Layout, such as Layout\(text\): got str"):
        gym.make("lapbook/Grid-v0", layout="...")


@needs_physics
def test_bad_steps_are_refused():
    with pytest.raises(ValueError, match=r"may jump a wall: got 3\.0/2"):
        gym.make("lapbook/PointRoom-v0", step=3.0)
    for substeps in (0, 2.5):
        with pytest.raises(ValueError, match=f"substeps must be a whole number of at least 1, got {substeps}"):
            gym.make("lapbook/PointRoom-v0", substeps=substeps)


def test_positions_come_back_from_observations():
    positions = np.array([[0.5, 0.5], [19.5, 3.25]])
    assert positions_of(GRID_ROOM, observe_floor(GRID_ROOM, positions)) == pytest.approx(positions, abs=1e-5)


PROGRAM = """
import gymnasium as gym
import lapbook
from lapbook.envs.point import has_physics

print(has_physics(), lapbook.recorded("PointMaze").transitions)
try:
    gym.make("lapbook/PointRoom-v0").close()
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("hidden", [True, False])
def test_without_pybullet_there_are_recordings_and_with_it_no_chatter(hidden):
    if not (hidden or PHYSICS):
        pytest.skip("PyBullet is not installed")
    folder = Path(__file__).parent.parent / "tools" / "without_pybullet"
    env = os.environ | ({"PYTHONPATH": str(folder)} if hidden else {})
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    hint = "the Point environments need PyBullet: pip install 'lapbook[point]' (it has wheels for Python 3.11)\n"
    assert done.stdout == (f"False 1000000\n{hint}" if hidden else "True 1000000\n")
