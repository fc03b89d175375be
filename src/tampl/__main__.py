"""The command `tampl` as a module, which torchrun can start: `torchrun ... -m tampl train ...`."""

from .lab.cli import main

if __name__ == "__main__":
    main()
