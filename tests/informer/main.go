// Informer follows one kind with client-go's own informer and prints what it is told, one JSON object per line.
//
// It is the judge of what the index serves: nothing here is ours but the printing. Lines are {"event": "add" | "update" |
// "delete" | "synced", ...}. A line on standard input asks for the whole cache, printed as one line "state".
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type line struct {
	Event   string            `json:"event"`
	Name    string            `json:"name,omitempty"`
	Version string            `json:"version,omitempty"`
	Old     string            `json:"old,omitempty"`
	UID     string            `json:"uid,omitempty"`
	State   map[string]string `json:"state,omitempty"`
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

func named(event string, object any) line {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	found := object.(*unstructured.Unstructured)
	return line{
		Event:   event,
		Name:    found.GetNamespace() + "/" + found.GetName(),
		Version: found.GetResourceVersion(),
		UID:     string(found.GetUID()),
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the server")
	group := flag.String("group", "", "of the kind")
	version := flag.String("version", "v1", "of the kind")
	plural := flag.String("plural", "configmaps", "the kind")
	namespace := flag.String("namespace", "", "all of them when empty")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		config.QPS = -1
		err = follow(dynamic.NewForConfigOrDie(config), schema.GroupVersionResource{
			Group: *group, Version: *version, Resource: *plural,
		}, *namespace)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func follow(client dynamic.Interface, kind schema.GroupVersionResource, namespace string) error {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, time.Duration(0), namespace, nil)
	informer := factory.ForResource(kind).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { tell(named("add", object)) },
		UpdateFunc: func(old, object any) {
			update := named("update", object)
			update.Old = old.(*unstructured.Unstructured).GetResourceVersion()
			tell(update)
		},
		DeleteFunc: func(object any) { tell(named("delete", object)) },
	})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	factory.Start(stop)
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		return fmt.Errorf("the informer did not sync")
	}
	tell(line{Event: "synced", Version: informer.LastSyncResourceVersion()})

	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		state := map[string]string{}
		for _, object := range informer.GetStore().List() {
			one := named("", object)
			state[one.Name] = one.Version
		}
		tell(line{Event: "state", Version: informer.LastSyncResourceVersion(), State: state})
	}
	close(stop)
	return nil
}
