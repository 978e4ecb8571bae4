// Stand-in for 471.omnetpp: a campus Ethernet, simulated event by event.
//
//   ethernet EVENTS
//
// 471.omnetpp simulates a campus backbone with several LANs on each switch, some
// 8,000 computers and 900 switches and hubs, on the OMNeT++ kernel: modules are
// objects that exchange messages, each allocated on the heap, and the set of future
// events is a binary heap of pointers to messages. So is this, with 2,000 computers
// and 225 switches, a quarter, so that some 20 million memory references see about
// half of the computers act. A computer has an application, a link layer and a network
// interface with a queue; a switch has an interface per port and a table of
// addresses. Ends with status 1 unless every frame that was sent is accounted for.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using Time = std::int64_t; // nanoseconds
using Address = std::uint64_t;

constexpr int CORES = 5, EDGES = 44, HOSTS = 9; // switches, per core, computers per edge
constexpr std::size_t QUEUE_LIMIT = 1000;       // frames; the next one is dropped
constexpr int FRAME_BYTES = 1518;               // the largest of Ethernet
constexpr Time THINK = 40'000'000;              // about the mean time between requests

class Draw { // SplitMix64
public:
    explicit Draw(std::uint64_t seed) : state(seed) {}
    std::uint64_t bits() {
        state += 0x9e3779b97f4a7c15;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // From 0 to end - 1; `end` is at most 2^32.
    std::uint64_t below(std::uint64_t end) { return (bits() >> 32) * end >> 32; }

private:
    std::uint64_t state;
};

// A sum of a geometric number of draws, about `mean`: no floating point, which would
// make runs depend on the library.
Time wait(Draw &draw, Time mean) {
    Time sum = 0;
    while (draw.below(8) != 0)
        sum += static_cast<Time>(draw.below(static_cast<std::uint64_t>(mean / 4)));
    return sum + 1;
}

class Module;

enum class Kind { Timer, Sent, Frame };

struct Packet { // what an application sends
    int asked_frames;
    int sequence;
    Time made;
    std::string name;
};

struct Message {
    Kind kind;
    Module *target;
    int port;
    Time time;
    std::uint64_t order; // of insertion: events at one time keep it
    Address from, to;
    int bytes;
    int hops;
    std::string name;
    std::unique_ptr<Packet> packet;
};

class Module {
public:
    Module(std::string path, Draw &seeds) : name(std::move(path)), draw(seeds.bits()) {}
    virtual ~Module() = default;
    virtual void handle(std::unique_ptr<Message> message) = 0;

    std::string name;
    std::map<std::string, long> counters; // the statistics that a module declares
    Draw draw;
};

// Future events: a binary heap of pointers, earliest first.
class Future {
public:
    void insert(std::unique_ptr<Message> message, Time time) {
        message->time = time;
        message->order = inserted++;
        heap.push_back(message.release());
        for (std::size_t i = heap.size() - 1; i > 0 && before(heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2)
            std::swap(heap[i], heap[(i - 1) / 2]);
    }

    std::unique_ptr<Message> earliest() {
        std::unique_ptr<Message> top(heap.front());
        heap.front() = heap.back();
        heap.pop_back();
        for (std::size_t i = 0, child = 1; child < heap.size(); i = child, child = 2 * i + 1) {
            if (child + 1 < heap.size() && before(heap[child + 1], heap[child]))
                child++;
            if (!before(heap[child], heap[i]))
                break;
            std::swap(heap[i], heap[child]);
        }
        now = top->time;
        return top;
    }

    std::size_t frames_on_the_way() const {
        std::size_t count = 0;
        for (const Message *m : heap)
            count += m->kind == Kind::Frame;
        return count;
    }

    ~Future() {
        for (Message *m : heap)
            delete m;
    }

    Time now = 0;

private:
    static bool before(const Message *a, const Message *b) {
        return a->time != b->time ? a->time < b->time : a->order < b->order;
    }
    std::vector<Message *> heap;
    std::uint64_t inserted = 0;
};

Future future;
long made, arrived, dropped, asked;

std::unique_ptr<Message> message(Kind kind, Module *target, const char *name) {
    auto m = std::make_unique<Message>();
    m->kind = kind;
    m->target = target;
    m->name = name;
    return m;
}

// A full-duplex interface: queues frames, sends one at a time, keeps the gap.
class Interface : public Module {
public:
    Interface(std::string path, Draw &seeds, Module *up, int port, Time per_byte)
        : Module(std::move(path), seeds), above(up), port_above(port), ns_per_byte_x100(per_byte) {
        for (const char *c : {"sent", "received", "bytes", "dropped"})
            counters[c] = 0;
    }

    void handle(std::unique_ptr<Message> m) override {
        if (m->kind == Kind::Sent) {
            busy = false;
            next();
        } else if (m->port == 0) { // from the cable
            counters["received"]++;
            m->target = above;
            m->port = port_above;
            future.insert(std::move(m), future.now + 1);
        } else if (queue.size() >= QUEUE_LIMIT) {
            counters["dropped"]++;
            dropped++;
        } else {
            queue.push_back(std::move(m));
            next();
        }
    }

    Interface *peer = nullptr;
    std::size_t waiting() const { return queue.size(); }

private:
    void next() {
        if (busy || queue.empty())
            return;
        std::unique_ptr<Message> frame = std::move(queue.front());
        queue.pop_front();
        busy = true;
        counters["sent"]++;
        counters["bytes"] += frame->bytes;
        // Preamble of 8 bytes, gap of 12.
        Time takes = (frame->bytes + 20) * ns_per_byte_x100 / 100;
        future.insert(message(Kind::Sent, this, "end-of-transmission"), future.now + takes);
        frame->target = peer;
        frame->port = 0;
        frame->hops++;
        future.insert(std::move(frame), future.now + takes + 500);
    }

    Module *above;
    int port_above;
    Time ns_per_byte_x100;
    bool busy = false;
    std::deque<std::unique_ptr<Message>> queue;
};

void hand_down(std::unique_ptr<Message> frame, Interface *to) {
    frame->target = to;
    frame->port = 1;
    future.insert(std::move(frame), future.now + 1);
}

class Switch : public Module {
public:
    Switch(std::string path, Draw &seeds) : Module(std::move(path), seeds) {
        counters["known"] = counters["unknown"] = 0;
    }

    Interface *add_port(Draw &seeds, Time per_byte) {
        int number = static_cast<int>(ports.size());
        ports.push_back(std::make_unique<Interface>(name + ".port[" + std::to_string(number) + "]", seeds, this,
                                                    number, per_byte));
        return ports.back().get();
    }

    void learn(Address host, int port) { table[host] = {port, future.now}; }

    void handle(std::unique_ptr<Message> frame) override {
        learn(frame->from, frame->port);
        auto found = table.find(frame->to);
        // Unknown ones go up: the cores know everybody.
        int port = found == table.end() ? 0 : found->second.port;
        counters[found == table.end() ? "unknown" : "known"]++;
        hand_down(std::move(frame), ports[static_cast<std::size_t>(port)].get());
    }

    std::vector<std::unique_ptr<Interface>> ports;

private:
    struct Known {
        int port;
        Time when;
    };
    std::map<Address, Known> table;
};

class Host : public Module {
public:
    Host(std::string path, Draw &seeds, Address own)
        : Module(path, seeds), address(own), link(path + ".llc", seeds, *this),
          interface(path + ".mac", seeds, &link, 0, 80) {
        for (const char *c : {"asked", "answers", "served", "delay"})
            counters[c] = 0;
    }

    // A timer: ask someone. A frame: an answer, or a question to be answered.
    void handle(std::unique_ptr<Message> m) override {
        if (m->kind == Kind::Timer) {
            Address server = draw.below(2) ? near_server : campus_servers[draw.below(campus_servers.size())];
            send(server, 64 + static_cast<int>(draw.below(200)), 1 + static_cast<int>(draw.below(3)), 0);
            counters["asked"]++;
            asked++;
            future.insert(std::move(m), future.now + wait(draw, THINK));
            return;
        }
        arrived++;
        if (m->packet->asked_frames == 0) {
            counters["answers"]++;
            counters["delay"] += static_cast<long>(future.now - m->packet->made);
            return;
        }
        counters["served"]++;
        for (int f = 0; f < m->packet->asked_frames; f++)
            send(m->from, FRAME_BYTES, 0, f);
    }

    void start() { future.insert(message(Kind::Timer, this, "think"), future.now + wait(draw, THINK)); }

    Address address, near_server = 0;
    std::vector<Address> campus_servers;

private:
    // The link layer: counts, and passes on in both directions.
    class Link : public Module {
    public:
        Link(std::string path, Draw &seeds, Host &up) : Module(std::move(path), seeds), host(up) {
            counters["up"] = counters["down"] = 0;
        }
        void handle(std::unique_ptr<Message> frame) override {
            bool up = frame->to == host.address;
            counters[up ? "up" : "down"]++;
            if (up)
                frame->target = &host;
            else
                return hand_down(std::move(frame), &host.interface);
            future.insert(std::move(frame), future.now + 1);
        }

    private:
        Host &host;
    };

    void send(Address to, int bytes, int asked, int sequence) {
        auto frame = message(Kind::Frame, &link, asked ? "request" : "answer");
        frame->from = address;
        frame->to = to;
        frame->bytes = bytes;
        frame->packet = std::make_unique<Packet>(Packet{asked, sequence, future.now, name + "-packet"});
        made++;
        future.insert(std::move(frame), future.now + 1000 + sequence);
    }

    Link link;

public:
    Interface interface;
};

void connect(Interface *a, Interface *b) {
    a->peer = b;
    b->peer = a;
}

struct Campus {
    std::vector<std::unique_ptr<Switch>> switches;
    std::vector<std::unique_ptr<Host>> hosts;
};

constexpr Time GIGABIT = 800, FAST = 8000; // hundredths of a nanosecond per byte

// The core switches hang on one another in a chain; edge switches on the cores.
Campus build() {
    Draw seeds(471);
    Campus campus;
    std::vector<Switch *> cores;
    for (int c = 0; c < CORES; c++) {
        campus.switches.push_back(std::make_unique<Switch>("campus.core[" + std::to_string(c) + "]", seeds));
        cores.push_back(campus.switches.back().get());
        if (c > 0) { // port 0 goes back, port 1 of the one before goes forth
            Interface *back = cores[c]->add_port(seeds, GIGABIT), *forth = cores[c - 1]->add_port(seeds, GIGABIT);
            connect(back, forth);
        }
    }
    std::vector<Address> servers;
    struct Place {
        int core, edge_port, host_port;
        Switch *edge;
    };
    std::vector<Place> places;
    for (int c = 0; c < CORES; c++)
        for (int e = 0; e < EDGES; e++) {
            std::string path = cores[c]->name + ".lan[" + std::to_string(e) + "]";
            campus.switches.push_back(std::make_unique<Switch>(path, seeds));
            Switch *edge = campus.switches.back().get();
            int port = static_cast<int>(cores[c]->ports.size());
            connect(cores[c]->add_port(seeds, GIGABIT), edge->add_port(seeds, GIGABIT));
            Address first = campus.hosts.size() + 1;
            for (int h = 0; h < HOSTS; h++) {
                Address own = campus.hosts.size() + 1;
                campus.hosts.push_back(std::make_unique<Host>(path + ".host[" + std::to_string(h) + "]", seeds, own));
                campus.hosts.back()->near_server = h == 0 ? first + 1 : first;
                places.push_back({c, port, static_cast<int>(edge->ports.size()), edge});
                connect(edge->add_port(seeds, FAST), &campus.hosts.back()->interface);
            }
            if (e % 8 == 0)
                servers.push_back(first);
        }
    // Tables as they are once everybody has been heard.
    for (std::size_t h = 0; h < places.size(); h++) {
        Address host = h + 1;
        for (int c = 0; c < CORES; c++) {
            int back = 0, forth = c == 0 ? 0 : 1;
            int port = places[h].core == c ? places[h].edge_port : places[h].core < c ? back : forth;
            cores[c]->learn(host, port);
        }
        for (auto &s : campus.switches)
            if (s.get() == places[h].edge)
                s->learn(host, places[h].host_port);
    }
    for (auto &host : campus.hosts)
        for (Address server : servers)
            if (server != host->address)
                host->campus_servers.push_back(server);
    return campus;
}

} // namespace

int main(int argc, char **argv) {
    char *end = nullptr;
    long events = argc == 2 ? std::strtol(argv[1], &end, 10) : 0;
    if (argc != 2 || *end != '\0' || events < 1 || events > 1'000'000'000) {
        std::fputs("usage: ethernet EVENTS, from 1 to 1000000000\n", stderr);
        return 2;
    }
    Campus campus = build();
    for (auto &host : campus.hosts)
        host->start();
    std::printf("%zu computers, %zu switches\n", campus.hosts.size(), campus.switches.size());
    std::fflush(stdout);
    for (long e = 0; e < events; e++) {
        std::unique_ptr<Message> next = future.earliest();
        Module *target = next->target;
        target->handle(std::move(next));
    }
    long waiting = static_cast<long>(future.frames_on_the_way());
    for (auto &host : campus.hosts)
        waiting += static_cast<long>(host->interface.waiting());
    for (auto &s : campus.switches)
        for (auto &port : s->ports)
            waiting += static_cast<long>(port->waiting());
    std::printf("%.6f s: %ld requests, %ld frames made, %ld arrived, %ld dropped, %ld on the way\n",
                static_cast<double>(future.now) / 1e9, asked, made, arrived, dropped, waiting);
    return made == arrived + dropped + waiting ? 0 : 1;
}
