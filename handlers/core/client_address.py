"""The client's address, through trusted proxies, and its form for rate limits."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

MOST_HOPS = 20
"""Addresses read from the end of `X-Forwarded-For`. No chain of proxies is longer."""
# Characters of an address, with an interface name after it.
_LONGEST = 64


def client_address(peer: str, forwarded_for: str, trusted: tuple[Network, ...]) -> str:
    """The client's address: the socket's peer, or the last address in `X-Forwarded-For` that is no trusted proxy. The
    header counts only from a trusted proxy, and only its last MOST_HOPS addresses. If all of these are trusted proxies,
    the result is the first of them."""
    address = parse_address(peer)
    hops = forwarded_for.rsplit(",", MOST_HOPS)[-MOST_HOPS:] if forwarded_for else []
    while address is not None and hops and any(address in network for network in trusted):
        hop = parse_address(hops.pop().strip())
        if hop is None:
            break
        address = hop
    return str(address) if address is not None else "unknown"


def window_address(address: str) -> str:
    """The address that rate limits count: an IPv6 address counts as its /64, which one person has to themselves."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return address


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The parsed address, without its zone. An IPv4 address in IPv6 form becomes IPv4."""
    if len(text) > _LONGEST:
        return None
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
