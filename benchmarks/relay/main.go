// Command relay makes many control planes of a few real ones, for benchmarks: it changes who they are, and nothing else.
//
//	relay CONFIG.json
//
// Every plane has an address of its own, https://127.0.0.1:PORT/instance/17 or /cluster/17, behind which is a real one
// that many share. Credentials pass through. What is changed:
//
//   - The UID of namespace kube-system, by which a plane is told from another.
//   - The names of what the plane keeps once in each: the mark of its adoption in an instance, the namespace of Karmada's
//     accounts in a member. All replacements have the length of what they replace, so they are made in paths, bodies and
//     watches alike, in both directions, without a look at their meaning.
//   - What an instance has: lists and watches over all namespaces show one namespace of the real plane, those of kinds
//     without a namespace only what carries the instance's label.
//
// GET /requests tells how many requests of the plane's own clients came, by kind.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
)

const label = "kairship-bench"

// Of these an instance sees what is in its own namespace.
var confined = words("deployments statefulsets daemonsets jobs cronjobs services ingresses configmaps secrets " +
	"persistentvolumeclaims propagationpolicies overridepolicies works rolebindings")

// Of these it sees what carries its label.
var labelled = words("clusters namespaces clusterpropagationpolicies clusteroverridepolicies")

var collection = regexp.MustCompile(`^(/api/v1|/apis/[^/]+/[^/]+)/([a-z]+)$`)

type plane struct {
	Server string `json:"server"`
	CA     string `json:"ca"`
	UID    string `json:"uid"`
	proxy  *httputil.ReverseProxy
}

type config struct {
	Port      int      `json:"port"`
	Cert      string   `json:"cert"`
	Key       string   `json:"key"`
	Instances []*plane `json:"instances"`
	Clusters  []*plane `json:"clusters"`
}

// identity is one of the planes that the relay shows.
type identity struct {
	kind   string
	number int
	// Pairs of words of the same length: the real one, and the one that is shown.
	words [][2]string
}

type identityKey struct{}

type relay struct {
	config
	instances, clusters atomic.Int64
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	must(err)
	r := &relay{}
	must(json.Unmarshal(content, &r.config))
	for _, each := range append(append([]*plane{}, r.Instances...), r.Clusters...) {
		each.proxy = proxyTo(each)
	}
	server := &http.Server{
		Addr:     fmt.Sprintf("127.0.0.1:%d", r.Port),
		Handler:  r,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	must(server.ListenAndServeTLS(r.Cert, r.Key))
}

func (r *relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/requests" {
		fmt.Fprintf(w, `{"instances": %d, "clusters": %d}`, r.instances.Load(), r.clusters.Load())
		return
	}
	parts := strings.SplitN(request.URL.Path, "/", 4)
	if len(parts) < 4 {
		http.NotFound(w, request)
		return
	}
	number, err := strconv.Atoi(parts[2])
	planes, counter := r.Instances, &r.instances
	if parts[1] == "cluster" {
		planes, counter = r.Clusters, &r.clusters
	}
	if err != nil || number < 0 {
		http.NotFound(w, request)
		return
	}
	if strings.HasPrefix(request.UserAgent(), "kairship") {
		counter.Add(1)
	}
	chosen := planes[number%len(planes)]
	shown := identify(parts[1], number, chosen)
	request.URL.Path = shown.toReal("/" + parts[3])
	request.URL.RawPath = ""
	if parts[1] == "instance" && request.Method == http.MethodGet {
		confine(request.URL, number)
	}
	if request.Body != nil && request.ContentLength > 0 {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		request.Body = io.NopCloser(strings.NewReader(shown.toReal(string(body))))
	}
	chosen.proxy.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), identityKey{}, shown)))
}

func identify(kind string, number int, real *plane) identity {
	own := identity{kind: kind, number: number}
	first := 1
	if kind == "cluster" {
		first = 2
	}
	own.words = append(own.words, [2]string{real.UID, fmt.Sprintf("%08d-0000-4000-8000-%012d", first, number)})
	if kind == "instance" {
		own.words = append(own.words, [2]string{fmt.Sprintf("kairship-i-%06d", number), "kairship-instance"})
	} else {
		own.words = append(own.words, [2]string{fmt.Sprintf("karmada-c-%05d", number), "karmada-cluster"})
	}
	return own
}

// toReal leaves the UID alone: nobody sends it.
func (own identity) toReal(text string) string {
	pair := own.words[1]
	return strings.ReplaceAll(text, pair[1], pair[0])
}

func confine(where *url.URL, number int) {
	found := collection.FindStringSubmatch(where.Path)
	if found == nil {
		return
	}
	name := fmt.Sprintf("world-%05d", number)
	switch {
	case confined[found[2]]:
		where.Path = found[1] + "/namespaces/" + name + "/" + found[2]
	case labelled[found[2]]:
		query := where.Query()
		selectors := []string{label + "=" + name}
		if given := query.Get("labelSelector"); given != "" {
			selectors = append(selectors, given)
		}
		query.Set("labelSelector", strings.Join(selectors, ","))
		where.RawQuery = query.Encode()
	}
}

func proxyTo(real *plane) *httputil.ReverseProxy {
	target, err := url.Parse(real.Server)
	must(err)
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM([]byte(real.CA)) {
		log.Fatal("no CA for " + real.Server)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64,
	}
	return &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Header.Del("Accept-Encoding")
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(response *http.Response) error {
			if response.StatusCode != http.StatusSwitchingProtocols {
				shown := response.Request.Context().Value(identityKey{}).(identity)
				response.Body = &replacing{body: response.Body, pairs: shown.words}
			}
			return nil
		},
	}
}

// replacing passes a body on with the words of another plane in it, at once: it keeps back only what may be the
// beginning of such a word.
type replacing struct {
	body    io.ReadCloser
	pairs   [][2]string
	ready   []byte
	waiting []byte
	err     error
}

func (r *replacing) Read(into []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		chunk := make([]byte, 32*1024)
		size, err := r.body.Read(chunk)
		r.err = err
		content := append(r.waiting, chunk[:size]...)
		for _, pair := range r.pairs {
			content = bytes.ReplaceAll(content, []byte(pair[0]), []byte(pair[1]))
		}
		kept := 0
		if err == nil {
			kept = r.begun(content)
		}
		r.ready, r.waiting = content[:len(content)-kept], append([]byte{}, content[len(content)-kept:]...)
	}
	size := copy(into, r.ready)
	r.ready = r.ready[size:]
	return size, nil
}

func (r *replacing) Close() error { return r.body.Close() }

// begun is the length of the longest end of the content that a word begins with.
func (r *replacing) begun(content []byte) int {
	longest := 0
	for _, pair := range r.pairs {
		for size := min(len(pair[0])-1, len(content)); size > longest; size-- {
			if bytes.HasSuffix(content, []byte(pair[0][:size])) {
				longest = size
			}
		}
	}
	return longest
}

func words(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.Fields(text) {
		found[word] = true
	}
	return found
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
