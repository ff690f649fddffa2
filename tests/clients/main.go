// Clients are programs as people write them with client-go and controller-runtime, used as judges of what is served.
//
//	clients informers   shared informers, typed and dynamic, on ConfigMaps
//	clients sync        how long an informer takes to have everything
//	clients leader      leader election on a Lease
//	clients manager     a controller-runtime manager with a reconciler of ConfigMaps
//
// Nothing in them is ours but the printing: one JSON object per line.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type line struct {
	Event   string            `json:"event"`
	Name    string            `json:"name,omitempty"`
	Seconds float64           `json:"seconds,omitempty"`
	Count   int               `json:"count,omitempty"`
	Typed   map[string]string `json:"typed,omitempty"`
	Dynamic map[string]string `json:"dynamic,omitempty"`
}

var (
	printing sync.Mutex
	printer  = json.NewEncoder(os.Stdout)
)

func tell(one line) {
	printing.Lock()
	defer printing.Unlock()
	if err := printer.Encode(one); err != nil {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// There is no limit of requests on the client's side: what is measured is the server.
func reached(kubeconfig string, protobuf bool) *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fail(err)
	}
	config.QPS = -1
	if protobuf {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return config
}

func main() {
	programs := map[string]func([]string){"informers": informing, "sync": syncing, "leader": leader, "manager": managing}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fail(fmt.Errorf("one of informers, sync, leader, manager"))
	}
	programs[os.Args[1]](os.Args[2:])
}
