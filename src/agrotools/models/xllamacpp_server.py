"""llama.cpp's server from the package xllamacpp, with the options of ``llama-server`` that matter most.

It is a script, not a module of the package, so that it starts without importing agrotools.
"""

import argparse
import sys
import threading
from importlib.metadata import version


def main() -> None:
    """Serve a model until the process is ended."""
    parser = argparse.ArgumentParser(prog="xllamacpp_server", description=__doc__)
    parser.add_argument("-m", "--model", help="GGUF file")
    parser.add_argument("-hf", "--hf-repo", help="USER/REPOSITORY[:QUANT] on Hugging Face")
    parser.add_argument("--mmproj", help="GGUF file of the part that sees pictures")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-c", "--ctx-size", type=int, help="tokens of all conversations together")
    parser.add_argument("-np", "--parallel", type=int, help="conversations at once")
    parser.add_argument("-t", "--threads", type=int)
    parser.add_argument("-ngl", "--n-gpu-layers", type=int)
    parser.add_argument("-s", "--seed", type=int)
    parser.add_argument("--version", action="version", version=f"xllamacpp {version('xllamacpp')}")
    options = parser.parse_args()
    if options.hf_repo:
        parser.error(
            "xllamacpp downloads no models: download the GGUF file and name it, or install llama-server"
        )

    import xllamacpp  # pyright: ignore[reportMissingImports] - not in the test environment

    params = xllamacpp.CommonParams()
    if options.model:
        params.model.path = options.model
    if options.mmproj:
        params.mmproj.path = options.mmproj
    params.hostnames, params.port = [options.host], options.port
    settings = {
        "n_ctx": options.ctx_size,
        "n_parallel": options.parallel,
        "n_gpu_layers": options.n_gpu_layers,
    }
    for name, value in settings.items():
        if value is not None:
            setattr(params, name, value)
    if options.threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    if options.seed is not None:
        params.sampling.seed = options.seed
    server = xllamacpp.Server(params)
    sys.stderr.write(f"listening on {server.listening_address}\n")
    threading.Event().wait()  # until a signal ends it


if __name__ == "__main__":
    main()
