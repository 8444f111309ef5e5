"""`python -m tradewind` is `tradewind`."""

from tradewind.cli.app import main

if __name__ == "__main__":
    main()
