"""What each client of a room has seen: nothing may be lost, invented, twice, or out of order."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Seen:
    """What one client has seen of a room: identifiers and texts ``SENDER NUMBER``, as they came."""

    client: str
    got: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    duplicates: int = 0
    """Messages that came twice, and were known by their identifiers."""
    resumes: int = 0
    gaps: list[str] = field(default_factory=list[str])
    """What it was told of messages that are missing."""
    gaps_expected: int = 0

    def add(self, identifier: str, text: str) -> None:
        """A message has come."""
        if identifier == "gap":
            self.gaps.append(text)
        elif any(identifier == known for known, _ in self.got[-3000:]):
            self.duplicates += 1
        else:
            self.got.append((identifier, text))

    @property
    def last_id(self) -> str:
        """What the client says when it comes back."""
        return self.got[-1][0] if self.got else ""


def check(
    sent: dict[str, int],
    clients: list[Seen],
    *,
    is_one_order: bool = True,
    is_in_order: bool = True,
) -> dict[str, int]:
    """Check what the clients of a room have seen that were there all the time.

    Args:
        sent: How many messages each sender has sent, which are numbered from 0. clients: What they have
        seen. is_one_order: Whether all have to have seen the same order. is_in_order: Whether they have
        to have seen each sender's order: not if it sends by way of several nodes.
    """
    everything = {f"{sender} {number}" for sender, count in sent.items() for number in range(count)}
    for client in clients:
        assert len(client.gaps) <= client.gaps_expected, (
            f"{client.client} was told of a gap: {client.gaps[:5]}"
        )
        texts = [text for _, text in client.got]
        seen = set(texts)
        assert len(texts) == len(seen), (
            f"{client.client} has seen a message twice under two identifiers"
        )
        lost, invented = everything - seen, seen - everything
        assert not lost, f"{client.client} has not seen {len(lost)}: {sorted(lost)[:5]}"
        assert not invented, f"{client.client} has seen what was not sent: {sorted(invented)[:5]}"
        for sender, count in sent.items():
            numbers = [int(text.split()[1]) for text in texts if text.split()[0] == sender]
            assert not is_in_order or numbers == list(range(count)), (
                f"{client.client}: {sender}'s are out of order"
            )
    if is_one_order:
        orders = {tuple(text for _, text in client.got) for client in clients}
        assert len(orders) <= 1, f"{len(orders)} orders of one room"
    return {
        "messages": len(everything),
        "deliveries": sum(len(client.got) for client in clients),
        "duplicates": sum(client.duplicates for client in clients),
        "resumes": sum(client.resumes for client in clients),
    }
