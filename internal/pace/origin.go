package pace

import "net/netip"

// Origin is what an address is counted as: a host, or of version 6 a network of 64 bits, as one host may have all of its
// addresses, and one of 48 bits.
type Origin struct{ Host, Site string }

// OriginOf returns what an address with a port is counted as. Site is empty where there is none.
func OriginOf(address string) Origin {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return Origin{Host: address}
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return Origin{Host: ip.String()}
	}
	return Origin{netip.PrefixFrom(ip, 64).Masked().String(), netip.PrefixFrom(ip, 48).Masked().String()}
}
