"""The entry with the profiles of gRPC: ``citius serve grpc_app:app``."""

from app import app
from gen.benchmark_connect import BenchmarkService, BenchmarkServiceASGIApplication
from gen.benchmark_pb import SumReply, SumRequest


class Sums(BenchmarkService):
    async def get_sum(self, request: SumRequest, ctx) -> SumReply:
        return SumReply(result=request.a + request.b)


app.mount_rpc(BenchmarkServiceASGIApplication(Sums()))
