"""Makes the default torch package load where none of the CUDA libraries is installed that it is linked to.

    python torch-without-cuda.py        run by the python of the environment that has torch; needs gcc and binutils

For each missing library, a stub of that name is put beside torch's own. Together the stubs define what torch leaves
undefined; each function answers "no device", or aborts where that cannot be told. torch itself is not changed.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

LIB = Path(sysconfig.get_paths()["purelib"]) / "torch" / "lib"
GPU_LIBRARY = re.compile(r"lib(cu|nv|nccl)")
GPU_SYMBOL = re.compile(r"^(cu|nccl|nvrtc|nvshmem|nvtx|cufile|__cuda|nvJit)", re.IGNORECASE)
NO_DEVICE = 100

PROBE = """
import torch
x = torch.randn(4, 4, requires_grad=True)
(x @ x).sum().backward()
assert not torch.cuda.is_available() and x.grad.abs().sum() > 0
"""


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def torch_libraries() -> list[Path]:
    found = [*LIB.glob("*.so*"), *LIB.parent.glob("_C*.so")]
    return [path for path in found if not GPU_LIBRARY.match(path.name)]


def missing_libraries(libraries: list[Path]) -> list[str]:
    needed = {
        name
        for path in libraries
        for name in re.findall(r"NEEDED.*\[(.+?)\]", output("readelf", "-dW", str(path)))
    }
    return sorted(name for name in needed - {path.name for path in libraries} if GPU_LIBRARY.match(name))


def undefined_symbols(libraries: list[Path]) -> dict[str, str]:
    """Symbols that only the missing libraries can define, each with the version that it is asked for with, or ''."""
    undefined: dict[str, str] = {}
    defined: set[str] = set()
    for path in libraries:
        for line in output("nm", "-D", str(path)).splitlines():
            kind, name = line.split()[-2:]
            base, _, version = name.partition("@")
            if kind in "Uwv":
                undefined[base] = version.strip("@")
            else:
                defined.add(base)
    return {
        name: version for name, version in undefined.items() if name not in defined and GPU_SYMBOL.match(name)
    }


def stub(name: str) -> str:
    """A function in C."""
    if name.startswith("__cuda"):
        # torch's static initialisers call these when it is loaded.
        return f"void *{name}(void) {{ static long room[64]; return room; }}"
    if name.endswith(("String", "Name")):
        return f'const char *{name}(void) {{ return "no CUDA here"; }}'
    if name.startswith("cuda") or re.match(r"cu[A-Z]", name):
        return f"int {name}(void) {{ return {NO_DEVICE}; }}"
    return f"void {name}(void) {{ abort(); }}"


def build(library: str, source: Path, symbols: dict[str, str]) -> None:
    command = ["gcc", "-shared", "-fPIC", "-O0", "-fno-builtin", "-w", f"-Wl,-soname,{library}"]
    # Symbols that are asked for with a version carry the library's name in it.
    versions = {version for version in symbols.values() if version.split(".")[0] == library.split(".")[0]}
    if versions:
        script = source.with_suffix(".map")
        names = {
            version: [name for name, of in symbols.items() if of == version] for version in sorted(versions)
        }
        script.write_text(
            "".join(f"{version} {{ global: {'; '.join(those)}; }};\n" for version, those in names.items())
        )
        command.append(f"-Wl,--version-script={script}")
    subprocess.run([*command, "-o", str(LIB / library), str(source)], check=True)


def main() -> None:
    libraries = torch_libraries()
    symbols = undefined_symbols(libraries)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "stubs.c"
        source.write_text("#include <stdlib.h>\n" + "\n".join(map(stub, sorted(symbols))))
        for library in missing_libraries(libraries):
            build(library, source, symbols)
    subprocess.run([sys.executable, "-c", PROBE], check=True)


if __name__ == "__main__":
    main()
