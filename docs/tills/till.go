// A sale, sent again until its end is known: go run till.go KEY AMOUNT [ADDRESS], the amount in minor units.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 || strings.Trim(os.Args[2], "0123456789") != "" || os.Args[2] == "" {
		fmt.Fprintln(os.Stderr, "Usage: go run till.go KEY AMOUNT [ADDRESS], such as A-1 1500")
		os.Exit(64)
	}
	exits := map[string]int{"approved": 0, "declined": 1, "failed": 1, "reversed": 1}
	sale := fmt.Sprintf(`{"pay_id":%q,"amount":%s,"currency_name":"EUR"}`, os.Args[1], os.Args[2])
	address := append(os.Args, "http://localhost:8888")[3]
	client := http.Client{Timeout: 90 * time.Second}
	for {
		pause := 2
		request, _ := http.NewRequest("POST", address+"/sale", strings.NewReader(sale))
		request.Header.Set("Prefer", "wait=60")
		if answer, err := client.Do(request); err == nil { // Otherwise not there, or cut: the same call again.
			word := answer.Header.Get("X-Posline-Result")
			isUnsent := word == "failed" && answer.StatusCode == 503 // So the same call again.
			if code, known := exits[word]; known && !isUnsent {
				fmt.Println(word)
				io.Copy(os.Stderr, answer.Body)
				os.Exit(code)
			} else if (word == "pending" || word == "unknown") && answer.Header.Get("X-Posline-Repeat-Guard") == "off" {
				fmt.Fprintln(os.Stderr, word+", and no journal: look at the terminal, and do not sell again before")
				os.Exit(3)
			} else if word == "" && answer.StatusCode < 500 && answer.StatusCode != 408 {
				answer.Write(os.Stderr)
				os.Exit(2)
			}
			fmt.Sscan(answer.Header.Get("Retry-After"), &pause)
			answer.Body.Close()
		}
		time.Sleep(time.Duration(pause) * time.Second)
	}
}
