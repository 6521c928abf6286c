"""Block devices as targets, tried on loop devices: what is refused, and what a run does when the user insists."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.running import Ended, Gdsfw

SIZE = 32 << 20
Attach = Callable[..., str]


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Attach]:
    """Makes loop devices of 32 MiB, and takes them away."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("loop devices need root and losetup")
    devices: list[str] = []

    def make(name: str = "image", *options: str, sector: int = 512) -> str:
        image = tmp_path / name
        if not image.exists():
            image.write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
        command = ["losetup", "--find", "--show", "--sector-size", str(sector), *options, str(image)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no loop device can be attached: {done.stderr.strip()}")
        devices.append(done.stdout.strip())
        return devices[-1]

    yield make
    for device in devices:
        subprocess.run(["losetup", "--detach", device], check=False)


@pytest.fixture
def mounted(attach: Attach, tmp_path: Path) -> Iterator[str]:
    """A device with a mounted file system."""
    device, point = attach(), tmp_path / "point"
    subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
    point.mkdir()
    if subprocess.run(["mount", device, str(point)], check=False).returncode:
        pytest.skip("mounting is not allowed")
    yield device
    subprocess.run(["umount", str(point)], check=True)


def write(device: str, **more: object) -> dict[str, object]:
    return {"name": "w", "rw": "write", "filename": device, "block_size": "64KiB", "allow_overwrite": True, **more}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(gdsfw: Gdsfw, job: dict[str, object], *arguments: str) -> str:
    ended: Ended = gdsfw.run(job, arguments=arguments, code=4)
    return " ".join(ended.stderr.split())


def test_writing_needs_the_workload_and_the_command_line(gdsfw: Gdsfw, attach: Attach, tmp_path: Path) -> None:
    device = attach()
    before = digest(tmp_path / "image")
    said = refused(gdsfw, write(device))
    assert f"{device} is a block device. {device}: no partitions; not mounted" in said
    assert f"`--allow-destroy {device}` on the command line" in said
    assert "allow_overwrite" not in said
    assert "`allow_overwrite: true` in the job" in refused(
        gdsfw, write(device, allow_overwrite=False), "--allow-destroy", device
    )
    both = refused(gdsfw, write(device, allow_overwrite=False))
    assert f"`allow_overwrite: true` in the job and `--allow-destroy {device}`" in both
    assert digest(tmp_path / "image") == before


def test_what_is_on_it_is_named(gdsfw: Gdsfw, attach: Attach) -> None:
    if not (shutil.which("mkfs.ext4") and shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin")):
        pytest.skip("no mkfs.ext4 and blkid")
    device = attach()
    assert "content: nothing that blkid knows" in refused(gdsfw, write(device))
    subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
    assert "content: ext4" in refused(gdsfw, write(device))


@pytest.mark.parametrize("direct", [True, False])
def test_a_device_is_written_read_and_verified(gdsfw: Gdsfw, attach: Attach, tmp_path: Path, direct: bool) -> None:
    device = attach()
    ended = gdsfw.run(
        write(device, verify=True, numjobs=2, share="split", direct=direct),
        {"name": "r", "rw": "randread", "files_from": "w", "verify": True, "direct": direct},
        arguments=["--allow-destroy", device],
    )
    assert ended.jobs[0]["total_bytes"] == SIZE
    assert ended.jobs[1]["verify"]["checked_bytes"] == SIZE
    assert ended.jobs[0]["transport"]["cache"] == ("bypassed" if direct else "cold")
    assert not Path("/dev/.gdsfw-manifest.json").exists()
    # Nothing of it is known to a later run, which cannot look beside a device.
    again = gdsfw.run({"name": "r", "rw": "read", "filename": device, "verify": True}, code=3)
    assert "no earlier job of this run wrote the pattern" in again.stderr


def test_a_link_to_a_device_is_the_device(gdsfw: Gdsfw, attach: Attach, tmp_path: Path) -> None:
    device = attach()
    link = tmp_path / "by-id"
    link.symlink_to(device)
    gdsfw.run(write(str(link), size="1MiB"), arguments=["--allow-destroy", device])
    gdsfw.run(write(device, size="1MiB"), arguments=["--allow-destroy", str(link)])
    assert f"{link} is a block device" in refused(gdsfw, write(str(link)))


def test_another_device_that_was_named_does_not_count(gdsfw: Gdsfw, attach: Attach) -> None:
    one, other = attach("one"), attach("other")
    assert f"`--allow-destroy {one}`" in refused(gdsfw, write(one), "--allow-destroy", other)


def test_a_mounted_device_is_refused_whatever_is_said(gdsfw: Gdsfw, mounted: str, tmp_path: Path) -> None:
    said = refused(gdsfw, write(mounted), "--allow-destroy", mounted)
    assert f"{mounted} is a block device in use" in said
    assert f"on {tmp_path / 'point'}" in said


def test_a_device_with_a_mounted_partition_is_refused(gdsfw: Gdsfw, attach: Attach, tmp_path: Path) -> None:
    if not shutil.which("sfdisk"):
        pytest.skip("no sfdisk")
    device = attach("image", "--partscan")
    subprocess.run(["sfdisk", "-q", device], input="label: gpt\n,,L\n", text=True, check=True)
    subprocess.run(["losetup", "--detach", device], check=True)
    device = attach("image", "--partscan")
    name, point = f"{Path(device).name}p1", tmp_path / "point"
    number = Path("/sys/class/block") / name / "dev"
    if not number.exists():
        pytest.skip("the kernel makes no partitions of loop devices here")
    partition = tmp_path / "partition"  # where no udev makes names
    os.mknod(partition, 0o600 | stat.S_IFBLK, os.makedev(*map(int, number.read_text().split(":"))))
    subprocess.run(["mkfs.ext4", "-q", "-F", str(partition)], check=True)
    assert f"partitions {name}" in refused(gdsfw, write(device))
    assert "gpt partition table" in refused(gdsfw, write(device))
    point.mkdir()
    subprocess.run(["mount", str(partition), str(point)], check=True)
    try:
        before = digest(tmp_path / "image")
        said = refused(gdsfw, write(device), "--allow-destroy", device)
        assert digest(tmp_path / "image") == before
    finally:
        subprocess.run(["umount", str(point)], check=True)
    assert f"{name} on {point}" in said


def test_a_device_that_another_process_holds_is_refused(gdsfw: Gdsfw, attach: Attach) -> None:
    device = attach()
    holder = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        assert "somebody holds (EBUSY)" in refused(gdsfw, write(device), "--allow-destroy", device)
    finally:
        os.close(holder)
    gdsfw.run(write(device, size="1MiB"), arguments=["--allow-destroy", device])


def test_swap_is_refused(gdsfw: Gdsfw, attach: Attach) -> None:
    device = attach()
    subprocess.run(["mkswap", device], check=True, capture_output=True)
    if subprocess.run(["swapon", device], check=False, capture_output=True).returncode:
        pytest.skip("swap cannot be switched on here")
    try:
        said = refused(gdsfw, write(device), "--allow-destroy", device)
    finally:
        subprocess.run(["swapoff", device], check=True)
    assert "swap on" in said


def test_the_file_behind_a_loop_device_is_refused(gdsfw: Gdsfw, attach: Attach, tmp_path: Path) -> None:
    device = attach()
    said = refused(gdsfw, write(str(tmp_path / "image")), "--allow-destroy", device)
    assert f"is the file behind {device}" in said


def test_reading_needs_no_permission(gdsfw: Gdsfw, attach: Attach, tmp_path: Path) -> None:
    device = attach()
    before = digest(tmp_path / "image")
    ended = gdsfw.run({"name": "r", "rw": "read", "filename": device, "block_size": "1MiB"})
    assert ended.jobs[0]["read"]["bytes"] == SIZE
    assert digest(tmp_path / "image") == before


def test_a_device_has_its_own_sector(gdsfw: Gdsfw, attach: Attach) -> None:
    device = attach(sector=4096)
    ended = gdsfw.run(
        {"name": "r", "rw": "randread", "filename": device, "block_size": 512, "direct": True, "size": "1MiB"}, code=2
    )
    assert "512 is not a multiple of 4096" in ended.stderr


def test_ranges_beyond_the_end_are_mistakes(gdsfw: Gdsfw, attach: Attach) -> None:
    device = attach()
    ended = gdsfw.run(write(device, offset="31MiB", size="2MiB"), arguments=["--allow-destroy", device], code=2)
    assert f"is beyond the {SIZE} bytes of device {device}" in ended.stderr


def test_what_is_no_device_cannot_be_named(gdsfw: Gdsfw, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in (str(tmp_path / "file"), "/dev/null", "/dev/not-there"):
        ended = gdsfw.run(write("data/f", size="1MiB"), arguments=["--allow-destroy", name], code=2)
        assert f"--allow-destroy {name}: it is no block device" in ended.stderr
