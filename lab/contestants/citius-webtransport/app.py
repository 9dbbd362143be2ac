"""WebTransport on Citius: what comes on a stream or in a datagram goes back in the same way."""

import asyncio

from citius import App

app = App()


async def echo_stream(stream):
    async with stream:
        await stream.write(await stream.read_all(65_536))


async def echo_datagrams(session):
    async for data in session.datagrams():
        session.send_datagram(data)


@app.webtransport("/echo")
async def echo(session):
    async with asyncio.TaskGroup() as group:
        group.create_task(echo_datagrams(session))
        async for stream in session.incoming():
            group.create_task(echo_stream(stream))
