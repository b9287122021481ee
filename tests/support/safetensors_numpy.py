# The format's own library, from PyPI (safetensors, numpy), against ours; called by tests/model/safetensors_numpy.cpp.
#   safetensors_numpy.py write FILE         the file that lies beside that test
#   safetensors_numpy.py copy FILE COPY     reads a file, says what it holds, writes it again (without bf16)
import sys

try:
    import numpy as np
    import safetensors
    from safetensors.numpy import save_file
except ImportError:
    sys.exit(77)  # the test is skipped


def write(path):
    six = np.arange(6).reshape(2, 3)
    tensors = {str(t): six.astype(t) - (2 if np.dtype(t).kind in "fi" else 0)
               for t in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint8")}
    tensors["float32"] = tensors["float32"] / 3
    tensors |= {"bool": six % 2 == 1, "scalar": np.float32(7), "empty": np.zeros((0, 4), np.float32),
                "größe.重み": np.ones(3, np.float32)}
    save_file({k: np.asarray(v) for k, v in tensors.items()}, path, metadata={"who": "numpy", "quote": "\"\n"})


def copy(path, to):
    with open(path, "rb") as f:
        raw = f.read()
    parts = dict(safetensors.deserialize(raw))  # also types that numpy has not
    for name in sorted(parts):
        p = parts[name]
        print(name, p["dtype"], list(p["shape"]), bytes(p["data"]).hex())
    tensors = {}
    with safetensors.safe_open(path, "np") as f:
        metadata = f.metadata()
        for name in f.keys():
            if parts[name]["dtype"] != "BF16":
                tensors[name] = f.get_tensor(name)
                assert tensors[name].tobytes() == bytes(parts[name]["data"]), name
    for key in sorted(metadata or {}):
        print("metadata", repr(key), repr(metadata[key]))
    save_file(tensors, to, metadata=metadata)


if __name__ == "__main__":
    {"write": write, "copy": copy}[sys.argv[1]](*sys.argv[2:])
