# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`python -m carrier_storage`: see `carrier_storage.cli`."""

import sys

if __name__ == "__main__":
    try:
        from carrier_storage.cli.app import main

        status = main()
    except KeyboardInterrupt:  # while the command line itself was loading
        status = 130
    sys.exit(status)
