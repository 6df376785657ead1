"""Where a request comes from, through trusted proxies, and what that counts as."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

MOST_HOPS = 20
"""Addresses of `X-Forwarded-For` that are read, from its end: no chain of proxies is longer."""
# Characters of an address, with the name of an interface behind it.
_LONGEST = 64


def client_address(peer: str, forwarded_for: str, trusted: tuple[Network, ...]) -> str:
    """The address a request comes from: the socket's, or the last one in `X-Forwarded-For` that no trusted proxy
    wrote. The header of anybody else counts for nothing, and so does what stands before its last MOST_HOPS addresses:
    where trusted proxies wrote all of those, it is the first of them."""
    address = parse_address(peer)
    hops = forwarded_for.rsplit(",", MOST_HOPS)[-MOST_HOPS:] if forwarded_for else []
    while address is not None and hops and any(address in network for network in trusted):
        hop = parse_address(hops.pop().strip())
        if hop is None:
            break
        address = hop
    return str(address) if address is not None else "unknown"


def window_address(address: str) -> str:
    """What an address is counted as: itself, or its /64, of which one person has them all."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return address


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address that the text is, without its zone; one of IPv4 in the form of IPv6 as what it is."""
    if len(text) > _LONGEST:
        return None
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
