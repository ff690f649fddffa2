// Argocd fills Argo CD's own cluster cache from a server and prints what is in it, one JSON object per line.
//
// It lists and watches every kind that the server has, as Argo CD does for every cluster that it manages. A line on
// standard input asks for what the cache has of the namespace.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/argoproj/gitops-engine/pkg/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// What people deploy, as one says it to Argo CD by `resource.inclusions`: it gives up where it may not list a kind.
type included struct{}

func (included) IsExcludedResource(group, kind, _ string) bool {
	switch group {
	case "apps", "batch", "autoscaling", "policy.karmada.io", "networking.karmada.io":
		return false
	case "":
		switch kind {
		case "ConfigMap", "Secret", "Service", "ServiceAccount", "Namespace", "Pod", "PersistentVolumeClaim":
			return false
		}
	}
	return true
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server")
	namespace := flag.String("namespace", "", "what is told about")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	config.QPS, config.Burst = 50, 100 // as Argo CD sets them
	cluster := cache.NewClusterCache(config, cache.SetSettings(cache.Settings{ResourcesFilter: included{}}))
	if err := cluster.EnsureSynced(); err != nil {
		fail(err)
	}
	about := cluster.GetClusterInfo()
	tell(map[string]any{"event": "synced", "kinds": about.APIsCount, "resources": about.ResourcesCount, "version": about.K8SVersion})
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		found := map[string]string{}
		for key, resource := range cluster.FindResources(*namespace) {
			found[key.Kind+"/"+key.Name] = resource.ResourceVersion
		}
		tell(map[string]any{"event": "state", "state": found})
	}
}

func tell(one map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(one); err != nil {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
