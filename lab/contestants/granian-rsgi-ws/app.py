"""WebSockets on RSGI: messages sent back, and messages sent to all."""

from granian.rsgi import WebsocketMessageType

members = []


async def app(scope, protocol):
    transport = await protocol.accept()
    if scope.path == "/all":
        return await broadcast(transport)
    while (message := await transport.receive()).kind == WebsocketMessageType.string:
        await transport.send_str(message.data)


async def broadcast(transport):
    members.append(transport)
    try:
        while (message := await transport.receive()).kind == WebsocketMessageType.string:
            for member in members.copy():
                try:
                    await member.send_str(message.data)
                except Exception:
                    pass  # that member has left
    finally:
        members.remove(transport)
