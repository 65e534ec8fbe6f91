package web

const effectiveHelp = "Left empty: from now on."
