# Makes the interfaces that the tests of the service use.
ip link add eth0 type veth peer name peer0
ip link add eth1 type veth peer name peer1
# Packets for 10.99.0.9 arrive on eth0.
ip address add 10.99.0.1/24 dev peer0
ip neighbour add 10.99.0.9 lladdr 02:00:00:00:00:09 dev peer0
