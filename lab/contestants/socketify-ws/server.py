"""WebSockets on socketify: messages sent back, and messages sent to all."""

import argparse
import os

from socketify import App, AppListenOptions, CompressOptions


def echo(ws, message, opcode):
    ws.send(message, opcode)


def join(ws):
    ws.subscribe("all")


def broadcast(ws, message, opcode):
    ws.publish("all", message, opcode)  # to its sender, too


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.workers - 1):
        if os.fork() == 0:
            break
    app = App()
    plain = {"compression": CompressOptions.DISABLED, "max_payload_length": 1 << 24, "idle_timeout": 120}
    app.ws("/echo", {**plain, "message": echo})
    app.ws("/all", {**plain, "open": join, "message": broadcast})
    app.listen(AppListenOptions(port=options.port, host="127.0.0.1"), lambda config: None)
    app.run()


if __name__ == "__main__":
    main()
